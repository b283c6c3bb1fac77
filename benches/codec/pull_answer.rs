//! A pull answer of 32 messages of 1 KiB with 8 properties each, beside a plain copy of the same bytes.

use bytes::Bytes;
use divan::{Bencher, black_box, counter::BytesCount};
use rocketmq_sync::message::store_codec::{DecodeOptions, Decoded, StoredFields, decode_all, encode_stored};
use rocketmq_sync::message::{MessageExt, MessageQueue};

const MESSAGES: i64 = 32;

const PROPERTIES: &str = "TAGS\u{1}TagA\u{2}KEYS\u{1}order-1000042 user-77\u{2}UNIQ_KEY\u{1}0A0000090303070D0F1100000001002A\u{2}\
    WAIT\u{1}true\u{2}CLUSTER\u{1}DefaultCluster\u{2}MSG_REGION\u{1}DefaultRegion\u{2}TRACE_ON\u{1}true\u{2}\
    source\u{1}checkout-service\u{2}";

fn queue() -> MessageQueue {
    MessageQueue::new("TopicTest", "broker-a", 3)
}

/// The body of the answer, in one allocation as it comes from the network.
fn answer() -> Bytes {
    let content: Vec<u8> = (0..1024u32).map(|at| at as u8).collect();
    let mut body = Vec::new();
    for queue_offset in 0..MESSAGES {
        let fields = StoredFields {
            queue_id: 3,
            queue_offset,
            commit_log_offset: body.len() as i64,
            born_millis: 1_700_000_000_000,
            born_host: ([10, 0, 0, 9], 51234).into(),
            store_millis: 1_700_000_000_005,
            store_host: ([10, 0, 0, 1], 10911).into(),
            ..StoredFields::new("TopicTest", &content, PROPERTIES)
        };
        encode_stored(&fields, &mut body).expect("a record of ordinary size");
    }
    Bytes::from_owner(body)
}

fn decode(body: &Bytes, queue: &MessageQueue) -> Decoded {
    decode_all(body, Some(queue), 0, &DecodeOptions::default())
}

#[divan::bench]
fn copy(bencher: Bencher<'_, '_>) {
    let body = answer();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| black_box(&body).to_vec());
}

/// The copy into memory that is there already, without the allocation.
#[divan::bench]
fn copy_in_place(bencher: Bencher<'_, '_>) {
    let body = answer();
    let mut target = body.to_vec();
    bencher
        .counter(BytesCount::new(body.len()))
        .bench_local(|| black_box(&mut target).copy_from_slice(black_box(&body)));
}

#[divan::bench]
fn decode_32_messages(bencher: Bencher<'_, '_>) {
    let (body, queue) = (answer(), queue());
    bencher.counter(BytesCount::new(body.len())).bench_local(|| decode(black_box(&body), black_box(&queue)));
}

/// With giving the messages up again, as a consumer does in the end.
#[divan::bench]
fn decode_and_drop_32_messages(bencher: Bencher<'_, '_>) {
    let (body, queue) = (answer(), queue());
    bencher.counter(BytesCount::new(body.len())).bench_local(|| drop(decode(black_box(&body), black_box(&queue))));
}

/// With what a consumer looks at: the tag to filter by, the offset, the body's length.
#[divan::bench]
fn decode_and_filter_32_messages(bencher: Bencher<'_, '_>) {
    let (body, queue) = (answer(), queue());
    let wanted = |message: &MessageExt| message.tags() == Some("TagA") && !message.body().is_empty();
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let decoded = decode(black_box(&body), black_box(&queue));
        decoded.messages.iter().filter(|message| wanted(message)).map(MessageExt::queue_offset).sum::<i64>()
    });
}

#[divan::bench]
fn clone_one_message(bencher: Bencher<'_, '_>) {
    let messages = decode(&answer(), &queue()).messages;
    bencher.bench_local(|| black_box(&messages[7]).clone());
}
