//! Headers that are incomplete, wrong, or unlike our own.

use super::*;
use crate::error::ErrorKind;
use crate::protocol::{CommandHeader, ExtFields};
use std::fmt::Debug;

fn fields(entries: &[(&str, &str)]) -> ExtFields {
    entries.iter().copied().collect()
}

/// The text of the error of reading `H`.
#[track_caller]
fn fault<'a, H: CommandHeader<'a> + Debug>(ext: &'a ExtFields) -> String {
    let error = H::read(ext).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    error.to_string()
}

#[test]
fn a_missing_field_is_an_error_that_names_header_and_field() {
    let ext = fields(&[("suggestWhichBrokerId", "0"), ("nextBeginOffset", "1"), ("minOffset", "0")]);
    assert_eq!(
        fault::<PullMessageResponseHeader>(&ext),
        "PullMessageResponseHeader lacks the mandatory field maxOffset"
    );
    let none = ExtFields::new();
    assert_eq!(fault::<SendMessageRequestHeader<'_>>(&none), "SendMessageRequestHeader lacks the mandatory field a");
    let long = fields(&[("producerGroup", "g")]);
    assert!(fault::<SendMessageRequestHeader<'_>>(&long).ends_with("field topic"));
}

#[test]
fn a_number_that_is_none_is_an_error_that_shows_it() {
    for bad in ["", "x", "1.0", " 1", "99999999999999999999", "0x1"] {
        let ext = fields(&[("offset", bad)]);
        let text = fault::<GetMaxOffsetResponseHeader>(&ext);
        assert_eq!(text, format!("field offset of GetMaxOffsetResponseHeader is '{bad}', which is no number in range"));
    }
    let optional = fields(&[("topic", "t"), ("group", "g"), ("timestamp", "0"), ("queueId", "2147483648")]);
    assert!(fault::<ResetOffsetRequestHeader<'_>>(&optional).contains("queueId"));
    let long = fields(&[("offset", &"9".repeat(1000))]);
    assert!(fault::<GetMaxOffsetResponseHeader>(&long).len() < 200);
}

#[test]
fn numbers_and_truth_values_are_read_as_java_reads_them() {
    let ext = fields(&[("topic", "t"), ("group", "g"), ("timestamp", "+0012"), ("isForce", "TRUE"), ("new key", "?")]);
    let header = ResetOffsetRequestHeader::read(&ext).unwrap();
    assert_eq!((header.timestamp, header.is_force, header.queue_id), (12, true, None));
    let ext = fields(&[("topic", "t"), ("group", "g"), ("timestamp", "-0"), ("isForce", "yes")]);
    assert!(!ResetOffsetRequestHeader::read(&ext).unwrap().is_force);
}

#[test]
fn what_java_always_sends_has_its_default_when_it_is_missing() {
    let ext = fields(&[("topic", "t"), ("queueId", "0")]);
    assert!(GetMaxOffsetRequestHeader::read(&ext).unwrap().committed);
}

#[test]
fn fields_in_any_order_and_repeated_ones_are_read() {
    let ext = fields(&[
        ("maxOffset", "1"),
        ("minOffset", "2"),
        ("maxOffset", "3"),
        ("nextBeginOffset", "4"),
        ("suggestWhichBrokerId", "5"),
        ("suggestWhichBrokerId", "6"),
    ]);
    let header = PullMessageResponseHeader::read(&ext).unwrap();
    let numbers = (header.max_offset, header.min_offset, header.next_begin_offset, header.suggest_which_broker_id);
    assert_eq!(numbers, (3, 2, 4, 6));
}

#[test]
fn properties_stay_out_of_debug_output() {
    let header = ReplyMessageRequestHeader { properties: Some("hush"), topic: "t", ..Default::default() };
    let text = format!("{header:?}");
    assert!(text.contains("topic: \"t\"") && !text.contains("hush"), "{text}");
}
