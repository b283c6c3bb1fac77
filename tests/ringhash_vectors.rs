//! The positions of single keys on the ring of the consistent-hash strategy, to find a fault there quickly.
//!
//! `tests/vectors/ringhash.jsonl` was made as `allocation.jsonl` was; `ALLOCATION_VECTORS` names another folder.

mod vectors;

use rocketmq_sync::AllocateConsistentHash;
use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    key: String,
    hash: i64,
}

#[test]
fn keys_stand_where_java_puts_them() {
    let lines = vectors::read::<Line>("ringhash.jsonl");
    assert!(!lines.is_empty());
    for (number, Line { key, hash }) in lines {
        assert_eq!(AllocateConsistentHash::position(&key), hash, "line {number}: {key:?}");
    }
}
