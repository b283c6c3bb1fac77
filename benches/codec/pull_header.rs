//! The header of a pull request with 11 fields in both forms: built and encoded, decoded, decoded and read.

use bytes::Bytes;
use divan::{Bencher, black_box};
use rocketmq_sync::protocol::header::PullMessageRequestHeader;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, SerializeType};

const FORMS: [SerializeType; 2] = [SerializeType::Json, SerializeType::Rocketmq];

fn header() -> PullMessageRequestHeader<'static> {
    PullMessageRequestHeader {
        consumer_group: "CG",
        topic: "TopicTest",
        queue_id: 0,
        queue_offset: 42,
        max_msg_nums: 32,
        sys_flag: 3,
        commit_offset: 40,
        suspend_timeout_millis: 15_000,
        sub_version: 1_700_000_000_000,
        expression_type: Some("TAG"),
        max_msg_bytes: Some(262_144),
        bname: Some("broker-a"),
        ..PullMessageRequestHeader::default()
    }
}

fn encode(form: SerializeType, header: &PullMessageRequestHeader<'_>, out: &mut Vec<u8>) {
    RemotingCommand::request_in_form(form, RequestCode::PULL_MESSAGE, header).encode_head(out);
}

/// A frame without its length, shared as a received one is.
fn frame(form: SerializeType) -> Bytes {
    let mut out = Vec::new();
    encode(form, &header(), &mut out);
    Bytes::from_owner(out.split_off(4))
}

#[divan::bench(args = FORMS)]
fn build_and_encode(bencher: Bencher<'_, '_>, form: SerializeType) {
    let header = header();
    let mut out = Vec::with_capacity(4096);
    bencher.bench_local(|| {
        out.clear();
        encode(form, black_box(&header), &mut out);
        black_box(out.len())
    });
}

#[divan::bench(args = FORMS)]
fn decode(bencher: Bencher<'_, '_>, form: SerializeType) {
    let frame = frame(form);
    bencher.bench_local(|| RemotingCommand::decode(black_box(&frame).clone()).expect("a sound frame"));
}

#[divan::bench(args = FORMS)]
fn decode_and_read(bencher: Bencher<'_, '_>, form: SerializeType) {
    let frame = frame(form);
    bencher.bench_local(|| {
        let command = RemotingCommand::decode(black_box(&frame).clone()).expect("a sound frame");
        let header: PullMessageRequestHeader<'_> = command.header().expect("a sound header");
        black_box(header.queue_offset)
    });
}
