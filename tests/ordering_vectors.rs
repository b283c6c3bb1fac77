//! The order of client ids and queues against Java's.
//!
//! `tests/vectors/ordering.jsonl` was made as `allocation.jsonl` was; `ALLOCATION_VECTORS` names another folder.

mod vectors;

use rocketmq_sync::base::java_hash::string_cmp;
use rocketmq_sync::{Members, MessageQueue};
use serde::Deserialize;
use std::cmp::Ordering;
use std::sync::Arc;
use vectors::Triple;

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line {
    Cids { input: Vec<Arc<str>>, sorted: Vec<usize>, utf8_differs: bool },
    Mqs { input: Vec<Triple>, sorted: Vec<usize> },
    CmpStr { a: String, b: String, sign: i32, utf8_differs: bool },
    CmpMq(ComparedQueues),
}

#[derive(Deserialize)]
struct ComparedQueues {
    a: Triple,
    b: Triple,
    sign: i32,
    equal: bool,
    #[serde(default)]
    upstream_quirk: bool,
}

fn sign(order: Ordering) -> i32 {
    order as i32
}

#[test]
fn ids_and_queues_are_ordered_as_in_java() {
    let mut differing = 0;
    for (number, line) in vectors::read::<Line>("ordering.jsonl") {
        match line {
            Line::Cids { input, sorted, utf8_differs } => {
                let expected: Vec<Arc<str>> = sorted.iter().map(|index| input[*index].clone()).collect();
                let mut by_code_point = input.clone();
                by_code_point.sort();
                assert_eq!(by_code_point != expected, utf8_differs, "line {number}");
                assert_eq!(Members::new(input).ids(), expected, "line {number}");
            }
            Line::Mqs { input, sorted } => {
                let expected: Vec<MessageQueue> = sorted.iter().map(|index| vectors::queue(&input[*index])).collect();
                let mut queues: Vec<MessageQueue> = input.iter().map(vectors::queue).collect();
                queues.sort();
                assert_eq!(queues, expected, "line {number}");
            }
            Line::CmpStr { a, b, sign: expected, utf8_differs } => {
                assert_eq!(sign(string_cmp(&a, &b)), expected, "line {number}");
                assert_eq!(sign(string_cmp(&b, &a)), -expected, "line {number}");
                assert_eq!(sign(a.cmp(&b)) != expected, utf8_differs, "line {number}");
                differing += usize::from(utf8_differs);
            }
            Line::CmpMq(ComparedQueues { a, b, sign: expected, equal, upstream_quirk }) => {
                let (a, b) = (vectors::queue(&a), vectors::queue(&b));
                assert_eq!(a == b, equal, "line {number}");
                assert_eq!(a.cmp(&b), b.cmp(&a).reverse(), "line {number}");
                if upstream_quirk {
                    // Decided otherwise than Java. It compares queue numbers by a subtraction that overflows when they
                    // are over 2^31 apart, which puts them the wrong way round and breaks the order as a whole. Queue
                    // numbers are 0 and up, so members of one group never see it.
                    assert!(a.queue_id().checked_sub(b.queue_id()).is_none(), "line {number}: nothing overflows");
                    assert_eq!(a.cmp(&b), a.queue_id().cmp(&b.queue_id()), "line {number}");
                } else {
                    assert_eq!(sign(a.cmp(&b)), expected, "line {number}");
                }
            }
        }
    }
    assert!(differing > 0 || vectors::elsewhere(), "the lines where UTF-8 and UTF-16 differ are missing");
}
