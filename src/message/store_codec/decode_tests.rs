//! Sound records: those that Java wrote, and our own there and back.

use super::*;
use crate::error::ErrorKind;
use crate::message::vectors::*;
use crate::message::{BodyError, MessageExt, MessageQueue, compress, properties, sys_flag};
use crate::time::from_millis;
use bytes::Bytes;
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

const TEXT: &[u8] = b"Hello RocketMQ Hello RocketMQ";
const UNIQ_KEY: &str = "0A0000090303070D0F1100000001002A";

fn all(bytes: Vec<u8>) -> Vec<MessageExt> {
    let decoded = decode_all(&bytes.into(), None, 0, &DecodeOptions::default());
    assert_eq!(decoded.damage, None);
    decoded.messages
}

fn record(fields: &StoredFields<'_>) -> Bytes {
    let mut out = Vec::new();
    let size = encode_stored(fields, &mut out).unwrap();
    assert_eq!((size, size), (out.len(), fields.size()));
    out.into()
}

#[track_caller]
fn assert_is_the_first_vector(message: &MessageExt) {
    assert_eq!(message.topic(), "TopicTest");
    assert_eq!(message.queue_id(), 3);
    assert_eq!(message.broker_name(), "");
    assert_eq!(message.queue_offset(), 42);
    assert_eq!(message.commit_log_offset(), 0x123456);
    assert_eq!((message.flag(), message.sys_flag(), message.reconsume_times()), (0, 0, 0));
    assert_eq!(message.prepared_transaction_offset(), 0);
    assert_eq!(message.born_time(), from_millis(1_700_000_000_000));
    assert_eq!(message.store_time(), from_millis(1_700_000_000_005));
    assert_eq!(message.born_host().to_string(), "10.0.0.9:51234");
    assert_eq!(message.store_host().to_string(), "10.0.0.1:10911");
    assert_eq!(message.body(), b"Hello RocketMQ");
    assert_eq!(message.body_crc(), 1_774_740_973);
    assert_eq!(message.body_crc(), body_crc(message.body()));
    assert_eq!(message.body_error(), None);
    assert_eq!(message.tags(), Some("TagA"));
    assert_eq!(message.keys(), Some("k1 k2"));
    assert_eq!(message.unique_key(), Some(UNIQ_KEY));
    assert_eq!(message.msg_id(), UNIQ_KEY);
    assert_eq!(message.offset_msg_id(), "0A00000100002A9F0000000000123456");
    assert_eq!(message.properties().collect::<Vec<_>>(), [("TAGS", "TagA"), ("KEYS", "k1 k2"), ("UNIQ_KEY", UNIQ_KEY)]);
}

#[test]
fn reads_a_message_of_the_first_form() {
    let bytes = unhex(STORED_V1);
    assert_is_the_first_vector(&all(bytes.clone())[0]);
    let message = decode_one(bytes.into(), &DecodeOptions::default()).unwrap();
    assert_is_the_first_vector(&message);
    assert_eq!(message.store_size(), 177);
    assert_eq!((message.delay_level(), message.transaction_id()), (0, None));
}

#[test]
fn reads_a_message_of_the_second_form() {
    let mut bytes = unhex(STORED_V1);
    bytes[3] = 0xb2;
    bytes[7] = 0xab;
    bytes.insert(102, 0);
    let message = &all(bytes)[0];
    assert_is_the_first_vector(message);
    assert_eq!(message.store_size(), 178);
}

#[test]
fn reads_the_body_of_a_pull_answer() {
    let frame = [unhex(PULL_ANSWER_HEAD), unhex(STORED_V1)].concat();
    assert_eq!(frame.len(), 432);
    let header_length = u32::from_be_bytes([0, frame[5], frame[6], frame[7]]) as usize;
    assert_is_the_first_vector(&all(frame[8 + header_length..].to_vec())[0]);
}

#[test]
fn reads_long_addresses_and_a_compressed_body() {
    let bytes = unhex(STORED_V6_ZLIB);
    let message = &all(bytes.clone())[0];
    assert_eq!(message.queue_id(), 1);
    assert_eq!(message.queue_offset(), 43);
    assert_eq!(message.commit_log_offset(), 0x123507);
    assert_eq!((message.flag(), message.sys_flag(), message.reconsume_times()), (7, 0x330, 1));
    assert_eq!(message.born_time(), from_millis(1_700_000_000_100));
    assert_eq!(message.store_time(), from_millis(1_700_000_000_105));
    assert_eq!(message.born_host().to_string(), "[2001:db8::9]:51234");
    assert_eq!(message.store_host().to_string(), "[2001:db8::1]:10911");
    assert_eq!(message.body(), TEXT);
    assert_eq!(message.shared_body(), TEXT);
    assert_eq!(message.body_crc(), 1_131_742_648);
    assert_eq!(message.tags(), Some("TagB"));
    assert_eq!(message.unique_key(), None);
    assert_eq!(message.msg_id(), "20010DB800000000000000000000000100002A9F0000000000123507");

    let raw = DecodeOptions { inflate: false, ..DecodeOptions::default() };
    let message = decode_one(bytes.into(), &raw).unwrap();
    assert_eq!((message.sys_flag(), message.body_error()), (0x331, None));
    assert_eq!(message.body(), unhex(ZLIB));
    assert_eq!(message.body_crc(), body_crc(message.body()));
}

#[test]
fn writes_what_java_writes() {
    let properties = format!("TAGS\u{1}TagA\u{2}KEYS\u{1}k1 k2\u{2}UNIQ_KEY\u{1}{UNIQ_KEY}\u{2}");
    let first = StoredFields {
        queue_id: 3,
        queue_offset: 42,
        commit_log_offset: 0x123456,
        born_millis: 1_700_000_000_000,
        born_host: "10.0.0.9:51234".parse().unwrap(),
        store_millis: 1_700_000_000_005,
        store_host: "10.0.0.1:10911".parse().unwrap(),
        ..StoredFields::new("TopicTest", b"Hello RocketMQ", &properties)
    };
    assert_eq!(record(&first), unhex(STORED_V1));

    let body = unhex(ZLIB);
    let second = StoredFields {
        queue_id: 1,
        flag: 7,
        queue_offset: 43,
        commit_log_offset: 0x123507,
        sys_flag: 0x301,
        born_millis: 1_700_000_000_100,
        born_host: "[2001:db8::9]:51234".parse().unwrap(),
        store_millis: 1_700_000_000_105,
        store_host: "[2001:db8::1]:10911".parse().unwrap(),
        reconsume_times: 1,
        ..StoredFields::new("TopicTest", &body, "TAGS\u{1}TagB\u{2}")
    };
    assert_eq!(record(&second), unhex(STORED_V6_ZLIB));
}

#[test]
fn takes_a_batch_that_was_stored_as_one_message_apart() {
    let messages = all(unhex(STORED_INNER_BATCH));
    let seen: Vec<_> = messages.iter().map(|m| (m.queue_offset(), m.body(), m.tags())).collect();
    assert_eq!(seen, [(100, &b"hello"[..], Some("A")), (101, &b"world!"[..], None)]);
    for message in &messages {
        assert_eq!((message.sys_flag(), message.commit_log_offset()), (0xC0, 0x200000));
        assert_eq!(message.msg_id(), "0A00000100002A9F0000000000200000");
        assert_eq!(message.born_host().to_string(), "10.0.0.9:51234");
        assert_eq!((message.topic(), message.flag(), message.body_error()), ("TopicTest", 0, None));
        assert!(message.is_inner_batch());
    }
    let whole = DecodeOptions { split_batches: false, ..DecodeOptions::default() };
    let unsplit = decode_all(&unhex(STORED_INNER_BATCH).into(), None, 0, &whole);
    assert_eq!(unsplit.messages.len(), 1);
    assert_eq!(unsplit.messages[0].body(), unhex(BATCH_BODY));
    assert_eq!(unsplit.messages[0].property(properties::INNER_NUM), Some("2"));
    assert_eq!(decode_one(unhex(STORED_INNER_BATCH).into(), &whole).unwrap().body(), unhex(BATCH_BODY));
}

#[test]
fn marks_only_the_batch_that_cannot_be_taken_apart() {
    let body = unhex(BATCH_BODY);
    let small = compress::deflate(&body, 5).unwrap();
    let both = sys_flag::NEED_UNWRAP | sys_flag::INNER_BATCH;
    let of = |sys_flag, body: &[u8], options: &DecodeOptions| {
        let plain = record(&StoredFields::new("t", b"plain", ""));
        let batch = record(&StoredFields { sys_flag, reconsume_times: 4, ..StoredFields::new("t", body, "") });
        let decoded = decode_all(&[&plain[..], &batch, &plain].concat().into(), None, 0, options);
        assert_eq!(decoded.damage, None);
        decoded.messages
    };
    let usual = DecodeOptions::default();
    let raw = DecodeOptions { inflate: false, ..usual };

    let split = of(both | sys_flag::COMPRESSED, &small, &usual);
    assert_eq!(split.len(), 4);
    assert_eq!((split[1].body(), split[1].sys_flag(), split[1].reconsume_times()), (&b"hello"[..], both, 0));

    let errors = [
        (of(both, &body[..50], &usual), BodyError::BatchNotSplit),
        (of(both, b"", &usual), BodyError::BatchNotSplit),
        (of(both | sys_flag::COMPRESSED, &small, &raw), BodyError::BatchNotSplit),
        (of(both | sys_flag::COMPRESSED, &small[..9], &usual), BodyError::Broken),
        (of(both | sys_flag::COMPRESSED | 0x400, &small, &usual), BodyError::UnknownCompression { code: 4 }),
    ];
    for (messages, error) in errors {
        let seen: Vec<_> = messages.iter().map(MessageExt::body_error).collect();
        assert_eq!(seen, [None, Some(error), None]);
        assert_eq!(messages[1].reconsume_times(), 4);
    }

    for one in [sys_flag::NEED_UNWRAP, sys_flag::INNER_BATCH] {
        let messages = of(one, &body, &usual);
        assert_eq!((messages.len(), messages[1].body(), messages[1].body_error()), (3, &body[..], None));
    }
}

#[test]
fn keeps_a_body_that_does_not_inflate_as_it_is_stored() {
    let body = vec![b'x'; 10_000];
    let small = compress::deflate(&body, 5).unwrap();
    let usual = DecodeOptions::default();
    let of = |sys_flag, body: &[u8], options: &DecodeOptions| {
        let fields = StoredFields { sys_flag, ..StoredFields::new("t", body, "") };
        decode_one(record(&fields), options).unwrap()
    };
    let tight = DecodeOptions { max_inflated: 9_999, ..usual };
    let cases = [
        (of(1, &small, &tight), BodyError::TooLarge { limit: 9_999 }),
        (of(1, &small[..small.len() - 1], &usual), BodyError::Broken),
        (of(0x101, &small, &usual), BodyError::NotBuiltIn(sys_flag::CompressionType::Lz4)),
        (of(0x701, &small, &usual), BodyError::UnknownCompression { code: 7 }),
    ];
    for (message, error) in cases {
        assert_eq!(message.body_error(), Some(error));
        assert_eq!(message.sys_flag() & sys_flag::COMPRESSED, 1);
        assert_eq!(message.body(), &small[..message.body().len()]);
    }
    let exact = of(1, &small, &DecodeOptions { max_inflated: 10_000, ..usual });
    assert_eq!((exact.body(), exact.body_error(), exact.sys_flag()), (&body[..], None, 0));
    let empty = of(0x701, b"", &usual);
    assert_eq!((empty.body(), empty.body_error(), empty.sys_flag()), (&b""[..], None, 0x700));
}

#[test]
fn messages_come_from_the_queue_they_were_pulled_from() {
    let own = record(&StoredFields { queue_id: 9, queue_offset: 5, ..StoredFields::new("t", b"", "") });
    let other = record(&StoredFields { queue_id: 8, queue_offset: 6, ..StoredFields::new("other", b"", "") });
    let body = [&own[..], &other, &own, &other].concat().into();
    let queue = MessageQueue::new("t", "broker-a", 2);
    let messages = decode_all(&body, Some(&queue), 100, &DecodeOptions::default()).messages;
    for message in &messages {
        assert_eq!(message.message_queue(), &queue);
        assert_eq!((message.broker_name(), message.queue_id()), ("broker-a", 2));
    }
    let seen: Vec<_> = messages.iter().map(|m| (m.topic(), m.queue_offset())).collect();
    assert_eq!(seen, [("t", 105), ("other", 106), ("t", 105), ("other", 106)]);
    assert!(std::sync::Arc::ptr_eq(messages[0].shared_topic(), queue.shared_topic()));
    assert!(std::sync::Arc::ptr_eq(messages[1].shared_topic(), messages[3].shared_topic()));

    let unknown = decode_all(&body, None, 0, &DecodeOptions::default()).messages;
    let queues: Vec<_> = unknown.iter().map(|m| m.message_queue().to_string()).collect();
    assert_eq!(queues, ["t//9", "other//8", "t//9", "other//8"]);
}

#[test]
fn a_retried_message_shows_its_own_topic_and_keeps_its_queue() {
    let mut message = StoredFields::new("%RETRY%g", b"b", "RETRY_TOPIC\u{1}t\u{2}").to_message().unwrap();
    let topic = message.property(properties::RETRY_TOPIC).unwrap().into();
    message.set_topic(topic);
    message.set_reconsume_times(3);
    assert_eq!((message.topic(), message.message_queue().topic(), message.reconsume_times()), ("t", "%RETRY%g", 3));
    let again = message.to_message("%RETRY%g");
    assert_eq!((again.topic(), &again.body()[..]), ("%RETRY%g", &b"b"[..]));
    assert_eq!(again.properties_string(), "RETRY_TOPIC\u{1}t\u{2}");
}

#[test]
fn text_that_is_not_utf8_reads_as_in_java() {
    let mut bytes = record(&StoredFields::new("tXt", b"", "k\u{1}vX\u{2}")).to_vec();
    for byte in &mut bytes[88..] {
        if *byte == b'X' {
            *byte = 0xFF;
        }
    }
    let message = &all(bytes)[0];
    assert_eq!((message.topic(), message.property("k")), ("t\u{FFFD}t", Some("v\u{FFFD}")));
    assert_eq!(message.properties().collect::<Vec<_>>(), [("k", "v\u{FFFD}")]);
}

#[test]
fn half_messages_have_a_transaction_id() {
    let of = |text| StoredFields::new("t", b"", text).to_message().unwrap();
    assert_eq!(of("UNIQ_KEY\u{1}X\u{2}TRAN_MSG\u{1}true\u{2}DELAY\u{1}3").transaction_id(), Some("X"));
    assert_eq!(of("UNIQ_KEY\u{1}X\u{2}TRAN_MSG\u{1}false\u{2}").transaction_id(), None);
    assert_eq!(of("DELAY\u{1}3").delay_level(), 3);
    assert_eq!(of("DELAY\u{1}x").delay_level(), 0);
}

#[test]
fn the_checksum_property_is_one_like_any_other() {
    let text = String::from_utf8(unhex("5f5f435243333223013736353433323130303002")).unwrap();
    let message = StoredFields::new("t", b"", &text).to_message().unwrap();
    assert_eq!(message.property(properties::CRC32), Some("7654321000"));
}

#[test]
fn checksums_have_31_bits() {
    assert_eq!(body_crc(b""), 0);
    assert_eq!(body_crc(b"123456789"), 1_274_296_614);
    assert_eq!(body_crc(b"hello world"), 222_957_957);
}

#[test]
fn debug_shows_neither_body_nor_property_values() {
    let message = StoredFields::new("t", b"hidden", "name\u{1}secret\u{2}").to_message().unwrap();
    let text = format!("{message:?}");
    assert!(!text.contains("hidden") && !text.contains("secret") && !text.contains("104"), "{text}");
}

#[test]
fn a_message_is_small_and_shares_its_bytes() {
    assert!(size_of::<MessageExt>() <= 96, "{}", size_of::<MessageExt>());
    let bytes = Bytes::from(unhex(STORED_V1));
    let message = &decode_all(&bytes, None, 0, &DecodeOptions::default()).messages[0];
    assert_eq!(message.body().as_ptr(), bytes[88..].as_ptr());
    assert_eq!(message.clone().shared_body().as_ptr(), bytes[88..].as_ptr());
}

#[test]
fn one_record_must_be_the_whole_of_it() {
    let whole = unhex(STORED_V1);
    for length in 0..whole.len() {
        let error = decode_one(whole[..length].to_vec().into(), &DecodeOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol);
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(decode_one(longer.into(), &DecodeOptions::default()).is_err());
}

#[test]
fn refuses_to_write_what_no_record_can_hold() {
    let long = "x".repeat(70_000);
    for fields in [StoredFields::new(&long, b"", ""), StoredFields::new("t", b"", &long[..32_768])] {
        let mut out = vec![1, 2];
        assert_eq!(encode_stored(&fields, &mut out).unwrap_err().kind(), ErrorKind::MessageIllegal);
        assert_eq!(out, [1, 2]);
    }
    assert!(StoredFields::new(&long[..65_535], b"", &long[..32_767]).to_message().is_ok());
}

prop_compose! {
    fn host()(ip in any::<IpAddr>(), port in any::<u16>()) -> SocketAddr {
        SocketAddr::new(ip, port)
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        topic in "\\PC{0,300}", body in any::<Vec<u8>>(), text in "([a-z]{1,9}\u{1}\\PC{1,20}\u{2}){0,20}",
        ints in any::<[i32; 3]>(), flags in any::<i32>(), longs in any::<[i64; 3]>(), millis in any::<[i32; 2]>(),
        born_host in host(), store_host in host(),
    ) {
        let fields = StoredFields {
            topic: &topic, body: &body, properties: &text, born_host, store_host,
            queue_id: ints[0], flag: ints[1], reconsume_times: ints[2], sys_flag: flags & !0xF1,
            queue_offset: longs[0], commit_log_offset: longs[1], prepared_transaction_offset: longs[2],
            born_millis: millis[0].into(), store_millis: millis[1].into(),
        };
        let message = fields.to_message().unwrap();
        prop_assert_eq!(message.topic(), &topic);
        prop_assert_eq!(message.body(), &body);
        prop_assert_eq!(message.properties().collect::<Vec<_>>(), properties::parse(&text).collect::<Vec<_>>());
        prop_assert_eq!([message.queue_id(), message.flag(), message.reconsume_times()], ints);
        prop_assert_eq!([message.queue_offset(), message.commit_log_offset(), message.prepared_transaction_offset()], longs);
        prop_assert_eq!((message.born_host(), message.store_host()), (born_host, store_host));
        prop_assert_eq!(message.born_time(), from_millis(millis[0].into()));
        prop_assert_eq!(message.store_time(), from_millis(millis[1].into()));
        prop_assert_eq!(message.sys_flag() & !0x30, flags & !0xF1 & !0x30);
        prop_assert_eq!(message.store_size(), fields.size());
    }
}
