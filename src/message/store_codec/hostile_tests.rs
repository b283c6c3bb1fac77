//! Answers that are damaged: no panic, nothing skipped unseen, nothing invented.

use super::*;
use crate::message::vectors::*;
use crate::message::{MessageExt, MessageQueue, compress, sys_flag};
use bytes::Bytes;

/// Queue offset of the first record of [`answer`].
const FIRST: i64 = 1_000;

/// Records of every shape, at offsets from [`FIRST`] on, and where each begins.
fn answer() -> (Vec<u8>, Vec<usize>) {
    let small = compress::deflate(&[b'z'; 5_000], 5).unwrap();
    let long = "t".repeat(200);
    let v6 = "[2001:db8::9]:51234".parse().unwrap();
    let plain = StoredFields::new("TopicTest", b"Hello RocketMQ", "TAGS\u{1}TagA\u{2}KEYS\u{1}k1\u{2}");
    let shapes = [
        plain,
        StoredFields { topic: &long, born_host: v6, ..plain },
        StoredFields { body: &small, sys_flag: sys_flag::COMPRESSED, ..plain },
        StoredFields { body: b"", properties: "", store_host: v6, ..plain },
        plain,
    ];
    let (mut body, mut starts) = (Vec::new(), Vec::new());
    for (at, shape) in shapes.iter().enumerate() {
        starts.push(body.len());
        let fields = StoredFields { queue_offset: FIRST + at as i64, commit_log_offset: body.len() as i64, ..*shape };
        encode_stored(&fields, &mut body).unwrap();
    }
    starts.push(body.len());
    (body, starts)
}

fn decode(body: &[u8]) -> Decoded {
    let queue = MessageQueue::new("TopicTest", "broker-a", 0);
    decode_all(&Bytes::copy_from_slice(body), Some(&queue), 0, &DecodeOptions::default())
}

fn offsets(messages: &[MessageExt]) -> Vec<i64> {
    messages.iter().map(MessageExt::queue_offset).collect()
}

/// Asks a message everything, so that a wrong place within its record would panic.
fn touch(message: &MessageExt) -> usize {
    let text = format!("{message:?}{:?}{:?}", message.born_time(), message.store_time());
    let values: usize = message.properties().map(|(name, value)| name.len() + value.len()).sum();
    assert_eq!(message.body(), message.shared_body());
    text.len()
        + values
        + message.flag() as usize % 2
        + message.born_host().port() as usize
        + message.topic().len()
        + message.prepared_transaction_offset() as usize % 2
        + message.tags().map_or(0, str::len)
}

/// What holds for every input.
fn assert_consistent(body: &[u8], decoded: &Decoded) {
    decoded.messages.iter().for_each(|message| {
        touch(message);
    });
    let Some(damage) = &decoded.damage else {
        return;
    };
    assert!(damage.position < body.len());
    assert!(damage.messages_before <= decoded.messages.len());
    assert!(damage.places >= 1);
    let before = &decoded.messages[..damage.messages_before];
    assert_eq!(damage.last_good_offset, before.last().map(MessageExt::queue_offset));
    if damage.kind == DamageKind::BrokenStream {
        assert_eq!(damage.messages_before, decoded.messages.len(), "nothing can follow a broken stream");
        assert_eq!(damage.places, 1);
    }
}

#[test]
fn every_prefix_gives_the_whole_messages_and_says_where_it_is_cut() {
    let (body, starts) = answer();
    for cut in 0..=body.len() {
        let decoded = decode(&body[..cut]);
        assert_consistent(&body[..cut], &decoded);
        let whole = starts.iter().filter(|start| **start <= cut).count() - 1;
        assert_eq!(offsets(&decoded.messages), (FIRST..FIRST + whole as i64).collect::<Vec<_>>(), "cut at {cut}");
        match decoded.damage {
            None => assert!(starts.contains(&cut), "cut at {cut} goes unseen"),
            Some(damage) => {
                assert_eq!((damage.kind, damage.position), (DamageKind::BrokenStream, starts[whole]));
                assert_eq!(damage.last_good_offset, (whole > 0).then_some(FIRST + whole as i64 - 1));
            }
        }
    }
}

#[test]
fn a_bad_message_between_sound_ones_is_passed_over_and_reported() {
    let (body, starts) = answer();
    // What is changed within the record, by its place there.
    let changes: [(&str, usize, u8); 4] = [
        ("its magic is unknown", 4, 0xFF),
        ("its body has a negative length", 84, 0x80),
        ("its body does not fit", 85, 0x7F),
        ("its parts do not end where it does", 87, 0x01),
    ];
    for (at, start) in starts[..5].iter().enumerate().filter(|(at, _)| matches!(at, 0 | 2 | 4)) {
        for (reason, place, bits) in changes {
            let mut body = body.clone();
            body[start + place] ^= bits;
            let decoded = decode(&body);
            assert_consistent(&body, &decoded);
            let damage = decoded.damage.unwrap_or_else(|| panic!("{reason} at {at} goes unseen"));
            assert_eq!((damage.kind, damage.position, damage.messages_before), (DamageKind::BadMessage, *start, at));
            assert!(damage.reason == reason || place == 87, "{} instead of {reason}", damage.reason);
            assert_eq!(damage.queue_offset, Some(FIRST + at as i64));
            assert_eq!(damage.commit_log_offset, Some(*start as i64));
            assert_eq!(damage.size, starts[at + 1] - start);
            assert_eq!(damage.last_good_offset, (at > 0).then(|| FIRST + at as i64 - 1));
            let rest = (0..5).filter(|other| *other != at as i64).map(|other| FIRST + other);
            assert_eq!(offsets(&decoded.messages), rest.collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_size_that_leads_nowhere_ends_the_answer() {
    let (body, starts) = answer();
    let start = starts[2];
    let size = (starts[3] - start) as u32;
    for wrong in [0, 90, 91, size - 1, size + 1, size + 4, 0x7FFF_FFFF, 0x8000_0000, u32::MAX] {
        let mut body = body.clone();
        body[start..start + 4].copy_from_slice(&wrong.to_be_bytes());
        let decoded = decode(&body);
        assert_consistent(&body, &decoded);
        let damage = decoded.damage.unwrap();
        assert_eq!((damage.kind, damage.position), (DamageKind::BrokenStream, start), "size {wrong}");
        assert_eq!(damage.size, wrong as usize);
        assert_eq!(offsets(&decoded.messages), [FIRST, FIRST + 1]);
        assert_eq!(damage.last_good_offset, Some(FIRST + 1));
    }
}

#[test]
fn the_first_damage_counts_and_the_others_are_counted() {
    let (mut body, starts) = answer();
    for at in [1, 3] {
        body[starts[at] + 4] ^= 0xFF;
    }
    let decoded = decode(&body);
    assert_consistent(&body, &decoded);
    let damage = decoded.damage.unwrap();
    assert_eq!((damage.position, damage.messages_before, damage.places), (starts[1], 1, 2));
    assert_eq!(offsets(&decoded.messages), [FIRST, FIRST + 2, FIRST + 4]);
}

#[test]
fn the_offset_delta_is_in_the_offsets_of_a_damage() {
    let (mut body, starts) = answer();
    body[starts[1] + 4] ^= 0xFF;
    let queue = MessageQueue::new("TopicTest", "broker-a", 0);
    let decoded = decode_all(&body.into(), Some(&queue), 10, &DecodeOptions::default());
    let damage = decoded.damage.unwrap();
    assert_eq!((damage.last_good_offset, damage.queue_offset), (Some(FIRST + 10), Some(FIRST + 11)));
}

#[test]
fn mutations_never_panic_and_leave_earlier_messages_alone() {
    let (body, starts) = answer();
    let body = [body, unhex(STORED_INNER_BATCH), unhex(STORED_V6_ZLIB)].concat();
    let sound = decode(&body);
    assert_eq!(sound.damage, None);
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    for round in 0..5_000 {
        let mut changed = body.clone();
        let mut first = changed.len();
        for _ in 0..=next(4) {
            let at = next(changed.len());
            first = first.min(at);
            match next(4) {
                0 => changed[at] = [0, 1, 0x7F, 0x80, 0xFF][next(5)],
                1 => changed[at] ^= 1 << next(8),
                2 => changed.truncate(at + 1),
                _ => changed.insert(at, next(256) as u8),
            }
        }
        let decoded = decode(&changed);
        assert_consistent(&changed, &decoded);
        let untouched = starts.iter().filter(|start| **start <= first).count().saturating_sub(1);
        for (was, is) in sound.messages[..untouched].iter().zip(&decoded.messages) {
            assert_eq!((was.queue_offset(), was.body()), (is.queue_offset(), is.body()), "round {round}");
        }
        assert!(decoded.messages.len() >= untouched, "round {round}");
    }
}

#[test]
fn nonsense_is_no_answer() {
    for body in [&b""[..], b"\0", b"\0\0\0", &[0; 200], &[0xFF; 200]] {
        let decoded = decode(body);
        assert_consistent(body, &decoded);
        assert_eq!((decoded.messages.len(), decoded.damage.is_some()), (0, !body.is_empty()));
    }
}

#[test]
fn bodies_that_inflate_to_too_much_together_are_left_for_the_next_pull() {
    let small = compress::deflate(&[0; 100_000], 5).unwrap();
    let mut body = Vec::new();
    for queue_offset in 0..10 {
        let fields = StoredFields { queue_offset, sys_flag: 1, ..StoredFields::new("t", &small, "") };
        encode_stored(&fields, &mut body).unwrap();
    }
    let body = Bytes::from(body);
    for (total, expected) in [(1, 1), (100_000, 1), (350_000, 3), (1_000_000, 10)] {
        let options = DecodeOptions { max_inflated_total: total, ..DecodeOptions::default() };
        let decoded = decode_all(&body, None, 0, &options);
        assert_consistent(&body, &decoded);
        assert_eq!(decoded.messages.len(), expected, "at most {total} bytes");
        assert_eq!(decoded.damage.is_some(), expected < 10);
    }
}
