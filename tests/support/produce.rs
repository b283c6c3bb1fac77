//! Messages of this library's own producer that use what the stored form offers.

use super::Target;
use super::event::{Seen, Sent};
use rocketmq_sync::{Message, Producer, SendResult};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const TEXT: &str = "Größe 价格 🚀 a=b;c ";
const TAGS: [Option<&str>; 4] = [Some("TagA"), Some("TagB"), Some("标签"), None];
const SENDERS: usize = 4;

pub fn producer(target: &dyn Target) -> Producer {
    Producer::builder("suite_producer")
        .name_servers(target.name_servers())
        // A send that timed out on a busy machine may be stored all the same, and its repetition is a duplicate.
        .send_timeout(Duration::from_secs(30))
        .start()
        .unwrap_or_else(|error| panic!("the producer does not start: {error}"))
}

/// Sends `count` messages of all kinds from several threads.
pub fn produce(target: &dyn Target, topic: &str, count: usize) -> Vec<Sent> {
    let producer = producer(target);
    let next = AtomicUsize::new(0);
    let sent = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                loop {
                    let seq = next.fetch_add(1, Ordering::Relaxed);
                    if seq >= count {
                        return;
                    }
                    let one = send_varied(&producer, topic, seq);
                    sent.lock().expect("no sender panics while it holds the list").push(one);
                }
            });
        }
    });
    sent.into_inner().expect("no sender panics while it holds the list")
}

/// Sends one plain message with a tag. Repeats it while the cluster cannot take it, which is what a scenario that stops a
/// server expects of its producer.
pub fn send_until_taken(producer: &Producer, topic: &str, tag: &str, patience: Duration) -> Sent {
    let body = format!("to {topic} with {tag}");
    let message = Message::new(topic, body.clone()).with_tags(tag);
    let deadline = Instant::now() + patience;
    loop {
        match producer.send(&message) {
            Ok(result) => return sent(&result, body.as_bytes(), Some(tag), None, BTreeMap::new()),
            Err(error) => {
                assert!(Instant::now() < deadline, "not sent within {patience:?}: {error}");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn send_varied(producer: &Producer, topic: &str, seq: usize) -> Sent {
    let body = body(seq);
    let keys = [format!("rust-{seq}"), format!("schlüssel-{seq}")];
    let properties = BTreeMap::from([
        ("seq".to_owned(), seq.to_string()),
        ("text".to_owned(), format!("{TEXT}{seq}")),
        ("名字".to_owned(), "v".to_owned()),
    ]);
    let mut message = Message::new(topic, body.clone()).with_keys(keys.iter().map(String::as_str));
    if let Some(tag) = TAGS[seq % TAGS.len()] {
        message = message.with_tags(tag);
    }
    for (key, value) in &properties {
        message = message.with_property(key, value);
    }
    let result =
        producer.send(&message).unwrap_or_else(|error| panic!("message {seq} to {topic} is not sent: {error}"));
    sent(&result, &body, TAGS[seq % TAGS.len()], Some(keys.join(" ")), properties)
}

fn sent(
    result: &SendResult,
    body: &[u8],
    tags: Option<&str>,
    keys: Option<String>,
    properties: BTreeMap<String, String>,
) -> Sent {
    Sent {
        unique_key: result.msg_id().to_owned(),
        tags: tags.map(str::to_owned),
        keys,
        properties,
        body_len: body.len() as u64,
        body_sha256: Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// From a few bytes to 11 KiB: every 25th is over the 4 KiB from which bodies are compressed; every second is noise that
/// does not shrink.
fn body(seq: usize) -> Vec<u8> {
    let size = if seq % 25 == 24 { 5_000 + seq % 7 * 1_000 } else { seq % 600 };
    let mut body = format!("{seq} ").into_bytes();
    if seq % 2 == 1 {
        let mut state = seq as u32 | 1;
        body.extend((0..size).map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        }));
    } else {
        body.extend(TEXT.bytes().cycle().take(size));
    }
    body
}

/// Compares every delivery with what was sent, and fails for a message that is missing, altered or nobody's. Returns how
/// many deliveries repeated an earlier one.
pub fn compare<'a>(sent: &[Sent], seen: impl Iterator<Item = &'a Seen>) -> usize {
    let mut deliveries: HashMap<&str, Vec<&Seen>> = HashMap::new();
    for one in seen {
        deliveries.entry(&one.unique_key).or_default().push(one);
    }
    let mut repeated = 0;
    for expected in sent {
        let found = deliveries.remove(&*expected.unique_key).unwrap_or_else(|| panic!("never delivered: {expected:?}"));
        repeated += found.len() - 1;
        for one in found {
            let same = one.body_sha256 == expected.body_sha256
                && one.body_len == expected.body_len
                && one.tags == expected.tags
                && one.keys == expected.keys
                && expected.properties.iter().all(|(key, value)| one.properties.get(key) == Some(value));
            assert!(same, "delivered with a difference:\n{one:?}\nsent as\n{expected:?}");
        }
    }
    assert!(deliveries.is_empty(), "delivered, but sent by nobody here: {:?}", deliveries.values().next());
    repeated
}
