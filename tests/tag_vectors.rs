//! Replays `tests/vectors/tags.jsonl`: what Java's `String.hashCode` answers for 240 tags, many of them long, outside
//! the basic plane, or colliding. The file was made by running the reference classes of Apache RocketMQ (commit
//! `8fc57f1468d1`, Java 17). `tags_code` is the number that brokers keep and filter by.

use rocketmq_sync::base::java_hash::string_hash;
use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    tag: String,
    hash: i32,
    tags_code: i64,
    utf16_len: usize,
}

#[test]
fn every_tag_hashes_as_in_java() {
    let mut lines = 0;
    for (number, line) in include_str!("vectors/tags.jsonl").lines().enumerate() {
        let line: Line = serde_json::from_str(line).unwrap_or_else(|error| panic!("line {}: {error}", number + 1));
        assert_eq!(line.tag.encode_utf16().count(), line.utf16_len, "line {}", number + 1);
        assert_eq!(string_hash(&line.tag), line.hash, "line {}: {:?}", number + 1, line.tag);
        assert_eq!(i64::from(string_hash(&line.tag)), line.tags_code, "line {}: {:?}", number + 1, line.tag);
        lines += 1;
    }
    assert_eq!(lines, 240);
}
