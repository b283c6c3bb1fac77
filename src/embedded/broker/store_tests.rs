use super::*;
use crate::embedded::broker::filter::Filter;
use crate::embedded::broker::store_read::{Boundary, MAX_ANSWER_BYTES, ReadStatus};

fn store(bytes: usize, messages: usize, when_full: WhenFull) -> MessageStore {
    MessageStore::new(Limits { bytes, messages, when_full })
}

fn roomy() -> MessageStore {
    store(1 << 20, 1 << 20, WhenFull::Refuse)
}

/// Stores a record that consists of `text`, and returns its position.
fn put(store: &mut MessageStore, topic: &str, queue_id: i32, text: &str, time: i64) -> Option<i64> {
    if !store.admit(text.len(), 1) {
        return None;
    }
    let at = store.place(topic, queue_id, time);
    store.append(at, text.as_bytes().to_vec(), i64::from(text.as_bytes()[0]), std::iter::once(text));
    Some(at.position)
}

fn read(store: &mut MessageStore, offset: i64, max: i32) -> (ReadStatus, i64, String) {
    let answer = store.read("T", 0, offset, max, &Filter::All);
    (answer.status, answer.next_offset, String::from_utf8(answer.records).unwrap())
}

#[test]
fn decides_a_read_in_the_order_of_a_real_broker() {
    let mut store = store(9, 100, WhenFull::DropOldest);
    assert_eq!(read(&mut store, 0, 32), (ReadStatus::NoMessageInQueue, 0, String::new()));
    assert_eq!(read(&mut store, 7, 32), (ReadStatus::NoMessageInQueue, 0, String::new()));
    for text in ["aaa", "bbb", "ccc", "ddd", "eee"] {
        put(&mut store, "T", 0, text, 0).unwrap();
    }
    assert_eq!(store.bounds("T", 0), (2, 5));
    assert_eq!(read(&mut store, 1, 32), (ReadStatus::OffsetTooSmall, 2, String::new()));
    assert_eq!(read(&mut store, -1, 32), (ReadStatus::OffsetTooSmall, 2, String::new()));
    assert_eq!(read(&mut store, 2, 32), (ReadStatus::Found, 5, "cccdddeee".into()));
    assert_eq!(read(&mut store, 3, 1), (ReadStatus::Found, 4, "ddd".into()));
    assert_eq!(read(&mut store, 3, 0), (ReadStatus::Found, 4, "ddd".into()));
    assert_eq!(read(&mut store, 5, 32), (ReadStatus::OffsetOverflowOne, 5, String::new()));
    assert_eq!(read(&mut store, 9, 32), (ReadStatus::OffsetOverflowBadly, 5, String::new()));
    let none = store.read("T", 0, 2, 32, &Filter::Hashes(Vec::new()));
    assert_eq!((none.status, none.next_offset), (ReadStatus::NoMatchedMessage, 5));
    let last = store.read("T", 0, 2, 32, &Filter::Hashes(vec![i32::from(b'e')]));
    assert_eq!((last.status, last.next_offset, last.records), (ReadStatus::Found, 5, b"eee".to_vec()));
}

#[test]
fn an_answer_is_bounded_but_the_first_message_always_goes_out() {
    let mut store = roomy();
    let large = "x".repeat(MAX_ANSWER_BYTES + 1);
    put(&mut store, "T", 0, &large, 0).unwrap();
    for _ in 0..40 {
        put(&mut store, "T", 0, "y", 0).unwrap();
    }
    assert_eq!(read(&mut store, 0, 32).1, 1);
    assert_eq!(read(&mut store, 1, 1000).1, 33);
    for _ in 0..1000 {
        put(&mut store, "T", 0, "z", 0).unwrap();
    }
    let filtered = store.read("T", 0, 1, 32, &Filter::Hashes(Vec::new()));
    assert_eq!(filtered.next_offset, 801);
}

#[test]
fn positions_run_through_all_queues_and_find_exactly_their_record() {
    let mut store = roomy();
    assert_eq!(put(&mut store, "T", 0, "aaa", 0), Some(0));
    assert_eq!(put(&mut store, "U", 3, "bb", 0), Some(3));
    assert_eq!(put(&mut store, "T", 0, "c", 0), Some(5));
    assert_eq!(store.at_position(3), Some(&b"bb"[..]));
    assert_eq!(store.at_position(5), Some(&b"c"[..]));
    assert_eq!(store.at_position(4), None);
    assert_eq!(store.at_position(6), None);
    assert_eq!(store.bounds("U", 3), (0, 1));
    assert_eq!(store.bounds("U", 0), (0, 0));
}

#[test]
fn a_full_store_refuses_without_losing_anything() {
    let mut store = store(6, 100, WhenFull::Refuse);
    put(&mut store, "T", 0, "aaa", 0).unwrap();
    put(&mut store, "T", 0, "bbb", 0).unwrap();
    assert_eq!(put(&mut store, "T", 0, "c", 0), None);
    assert_eq!(read(&mut store, 0, 32).2, "aaabbb");
    assert!(!store.admit(7, 1));
}

#[test]
fn counts_messages_as_well_as_bytes() {
    let mut store = store(1000, 2, WhenFull::DropOldest);
    for text in ["a", "b", "c"] {
        put(&mut store, "T", 0, text, 0).unwrap();
    }
    assert_eq!((store.messages(), store.bytes()), (2, 2));
    assert_eq!(store.bounds("T", 0), (1, 3));
    assert!(!store.admit(1, 3));
}

#[test]
fn room_comes_first_from_what_nobody_waits_for() {
    let mut store = store(6, 100, WhenFull::Refuse);
    put(&mut store, "T", 0, "aa", 0).unwrap();
    let copy = put(&mut store, "T", 0, "bb", 0).unwrap();
    put(&mut store, "T", 0, "cc", 0).unwrap();
    store.discard(copy);
    store.discard(copy);
    assert_eq!(store.at_position(copy), Some(&b"bb"[..]));
    put(&mut store, "U", 0, "dd", 0).unwrap();
    assert_eq!(store.at_position(copy), None);
    assert_eq!(read(&mut store, 0, 32), (ReadStatus::Found, 3, "aacc".into()));
    assert_eq!(read(&mut store, 1, 1), (ReadStatus::Found, 3, "cc".into()));
    assert_eq!(put(&mut store, "U", 0, "e", 0), None);
}

#[test]
fn a_topic_made_again_starts_at_zero_and_the_old_messages_are_found_by_position_only() {
    let mut store = store(6, 100, WhenFull::Refuse);
    let first = put(&mut store, "T", 0, "aa", 0).unwrap();
    put(&mut store, "U", 0, "bb", 0).unwrap();
    assert_eq!(store.delete_topic("T").len(), 1);
    assert_eq!(store.delete_topic("T").len(), 0);
    put(&mut store, "T", 0, "cc", 0).unwrap();
    assert_eq!(store.bounds("T", 0), (0, 1));
    assert_eq!(store.at_position(first), Some(&b"aa"[..]));
    put(&mut store, "T", 0, "dd", 0).unwrap();
    assert_eq!(store.at_position(first), None);
    assert_eq!(read(&mut store, 0, 32).2, "ccdd");
}

#[test]
fn searches_by_time_as_the_table_says() {
    let mut store = roomy();
    let search = |store: &MessageStore, time| {
        (store.offset_by_time("T", 0, time, Boundary::Lower), store.offset_by_time("T", 0, time, Boundary::Upper))
    };
    assert_eq!(search(&store, 5), (0, 0));
    assert_eq!(store.earliest_time("T", 0), None);
    for time in [10, 20, 20, 20, 30] {
        put(&mut store, "T", 0, "x", time).unwrap();
    }
    assert_eq!(search(&store, 5), (0, 0));
    assert_eq!(search(&store, 20), (1, 3));
    assert_eq!(search(&store, 25), (4, 3));
    assert_eq!(search(&store, 31), (5, 4));
    assert_eq!(store.earliest_time("T", 0), Some(10));
    assert_eq!(store.time_at("T", 0, 4), Some(30));
    assert_eq!(store.time_at("T", 0, 5), None);
    // The clock went back: the log's times do not.
    put(&mut store, "T", 0, "x", 7).unwrap();
    assert_eq!(store.time_at("T", 0, 5), Some(30));
}

#[test]
fn finds_by_key_until_the_message_is_dropped() {
    let mut store = store(4, 100, WhenFull::DropOldest);
    let found = |store: &MessageStore, key: &str| {
        let mut found = Vec::new();
        store.by_key("T", key, |position, _, _| {
            found.push(position);
            true
        });
        found
    };
    for text in ["ab", "cd", "ab"] {
        put(&mut store, "T", 0, text, 0).unwrap();
    }
    assert_eq!(found(&store, "ab"), [4]);
    assert_eq!(found(&store, "cd"), [2]);
    assert!(found(&store, "zz").is_empty());
}
