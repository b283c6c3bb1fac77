//! Reading the golden vectors: one JSON object a line.

use rocketmq_sync::MessageQueue;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::Arc;

/// Names another folder to read vectors from.
const ELSEWHERE: &str = "ALLOCATION_VECTORS";

/// Whether another folder than the repository's is read.
#[allow(dead_code)] // not every file of tests needs it
pub fn elsewhere() -> bool {
    std::env::var_os(ELSEWHERE).is_some()
}

/// The lines of a file, with their numbers.
pub fn read<T: DeserializeOwned>(name: &str) -> Vec<(usize, T)> {
    let folder = std::env::var_os(ELSEWHERE)
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"), PathBuf::from);
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(at, line)| {
        let value = serde_json::from_str(line);
        (at + 1, value.unwrap_or_else(|error| panic!("{} line {}: {error}", path.display(), at + 1)))
    });
    read.collect()
}

/// A queue as the files write it: topic, broker name, number.
pub type Triple = (Arc<str>, Arc<str>, i32);

/// The queue itself.
#[allow(dead_code)] // not every file of tests needs it
pub fn queue((topic, broker, id): &Triple) -> MessageQueue {
    MessageQueue::new(topic.clone(), broker.clone(), *id)
}
