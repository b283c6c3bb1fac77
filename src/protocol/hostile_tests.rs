//! Headers as no honest peer writes them, and honest ones as Java might.

use crate::error::ErrorKind;
use crate::protocol::header::*;
use crate::protocol::{LanguageCode, RemotingCommand, RequestCode, SerializeType};
use bytes::Bytes;
use proptest::prelude::*;

/// A frame without its length: header word and header.
fn framed(form: u8, header: &[u8]) -> Bytes {
    let mut frame = (u32::from(form) << 24 | header.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(header);
    frame.into()
}

fn json(text: &str) -> crate::Result<RemotingCommand> {
    RemotingCommand::decode(framed(0, text.as_bytes()))
}

#[track_caller]
fn good(text: &str) -> RemotingCommand {
    json(text).unwrap()
}

#[track_caller]
fn bad(frame: Bytes) -> String {
    let error = RemotingCommand::decode(frame).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().starts_with("malformed header: "), "{error}");
    error.to_string()
}

/// A binary header with these lengths and bytes for remark and fields.
fn binary(remark: (i32, &[u8]), fields: (i32, &[u8])) -> Bytes {
    let mut header = vec![0, 105, 12, 1, 223, 0, 0, 0, 1, 0, 0, 0, 0];
    for (length, bytes) in [remark, fields] {
        header.extend_from_slice(&length.to_be_bytes());
        header.extend_from_slice(bytes);
    }
    framed(1, &header)
}

fn entry(key_length: i16, key: &[u8], value_length: i32, value: &[u8]) -> Vec<u8> {
    [&key_length.to_be_bytes()[..], key, &value_length.to_be_bytes(), value].concat()
}

fn block(entries: &[Vec<u8>]) -> Bytes {
    let fields = entries.concat();
    binary((0, b""), (fields.len() as i32, &fields))
}

#[test]
fn json_may_have_blanks_escapes_any_order_and_members_of_newer_peers() {
    let command = good(
        " {\t\"extFields\" : { \"a\" : \"x\\u0001\\u4f60\\uD83D\\uDE00\\/\\n\" , \"b\":null} ,\n\"new\":{\"x\":[{}]},\
         \"code\" :11,\"opaque\":-5, \"language\":\"GO\",\"version\":1,\"flag\":1,\"remark\":\"l\\u00e9\" } \r\n",
    );
    assert_eq!((command.code, command.opaque, command.version, command.flag), (11, -5, 1, 1));
    assert_eq!((command.language, command.remark.as_deref()), (LanguageCode::GO, Some("lé")));
    assert_eq!(command.ext_fields.get("a"), Some("x\u{1}你😀/\n"));
    assert_eq!(command.ext_fields.len(), 1);
}

#[test]
fn json_values_that_are_no_text_become_their_source() {
    let command =
        good(r#"{"extFields":{"t":true,"f":1.50,"e":1e3,"n":-7,"o":{"x": [1,"}"]},"l":[ ],"z":null,"d":1,"d":2}}"#);
    let expected =
        [("t", "true"), ("f", "1.50"), ("e", "1e3"), ("n", "-7"), ("o", r#"{"x": [1,"}"]}"#), ("l", "[ ]"), ("d", "2")];
    assert_eq!(command.ext_fields, expected.into_iter().collect());
    let hidden = good(r#"{"extFields":{"d":1,"d":null}}"#);
    assert!(hidden.ext_fields.is_present() && hidden.ext_fields.is_empty());
}

#[test]
fn json_numbers_may_be_text_and_members_may_be_null_or_missing() {
    let command = good(r#"{"code":"17","opaque":"3","flag":null,"remark":null,"extFields":null,"language":null}"#);
    assert_eq!((command.code, command.opaque, command.flag), (17, 3, 0));
    assert!(command.remark.is_none() && !command.ext_fields.is_present());
    let empty = good("{}");
    assert_eq!((empty.code, empty.flag, empty.version, empty.language), (0, 0, 0, LanguageCode::JAVA));
    assert_ne!(empty.opaque, good("{}").opaque, "a missing opaque is a fresh one");
}

#[test]
fn json_languages_never_fail() {
    for (text, language) in [
        ("\"RUST\"", LanguageCode::RUST),
        ("\"rust\"", LanguageCode::RUST),
        ("12", LanguageCode::RUST),
        ("99", LanguageCode(99)),
        ("\"COBOL\"", LanguageCode::UNKNOWN),
        ("\"C\\u004fBOL\"", LanguageCode::UNKNOWN),
        ("[]", LanguageCode::UNKNOWN),
    ] {
        assert_eq!(good(&format!("{{\"language\":{text}}}")).language, language, "{text}");
    }
}

#[test]
fn half_a_surrogate_pair_costs_neither_the_connection_nor_its_neighbours() {
    for (escaped, text) in [
        ("a\\ud83db", "a\u{FFFD}b"),
        ("\\ude00\\ud83d\\ude00\\n", "\u{FFFD}😀\n"),
        ("\\ud83d\\ud83d\\ude00", "\u{FFFD}😀"),
        ("\\ud83d", "\u{FFFD}"),
        ("é\\\\\\ud83d\\\"é", "é\\\u{FFFD}\"é"),
    ] {
        let command = good(&format!("{{\"extFields\":{{\"k\":\"{escaped}\"}}}}"));
        assert_eq!(command.ext_fields.get("k"), Some(text), "{escaped}");
    }
}

#[test]
fn json_that_is_no_header_is_an_error() {
    for text in [
        " ",
        "null",
        "[]",
        "1",
        "\"{}\"",
        "{",
        "{}{}",
        "{}x",
        "{\"code\":}",
        "{\"code\":1",
        "{\"code\":1,}",
        "{\"code\":true}",
        "{\"code\":1.5}",
        "{\"code\":\"\"}",
        "{\"code\":2147483648}",
        "{\"code\":+1}",
        "{\"code\":01}",
        "{\"code\":[]}",
        "{\"extFields\":[]}",
        "{\"extFields\":1}",
        "{\"extFields\":{}",
        "{\"extFields\":{\"a\"}}",
        "{\"extFields\":{\"a\":\"b}",
        "{\"extFields\":{\"a\":\"\\x\"}}",
        "{\"remark\":\"\u{1}\"}",
        "{code:1}",
        "garbage",
        "{\"opaque\":1,\"opaque\"",
        "GET / HTTP/1.1\r\n\r\n",
    ] {
        bad(framed(0, text.as_bytes()));
    }
    assert!(bad(framed(0, b"{\"remark\":\"\xff\"}")).contains("not UTF-8"));
}

#[test]
fn nesting_without_end_neither_overflows_the_stack_nor_fails_when_it_is_unused() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let command = good(&format!("{{\"extFields\":{{\"a\":{deep}}},\"code\":5}}"));
    assert_eq!(command.code, 5);
    assert_eq!(command.ext_fields.get("a"), Some(&*deep));
    bad(framed(0, "{\"extFields\":".repeat(200_000).as_bytes()));
    bad(framed(0, format!("{{\"code\":{}", "[".repeat(200_000)).as_bytes()));
}

#[test]
fn many_fields_are_read_in_reasonable_time() {
    // Quadratic work would take minutes here.
    let fields: String = (0..20_000).map(|n| format!("\"k{n}\":{},", if n % 2 == 0 { "null" } else { "1" })).collect();
    let command = good(&format!("{{\"extFields\":{{{fields}\"z\":1}}}}"));
    assert_eq!(command.ext_fields.len(), 10_001);
    let entries: Vec<_> = (0..20_000).map(|n: i32| entry(4, &n.to_be_bytes().map(|b| b & 0x7F), n % 2, b"v")).collect();
    let entries: Vec<_> = entries
        .into_iter()
        .map(|mut e| {
            e.truncate(e.len() - usize::from(e[9] == 0));
            e
        })
        .collect();
    assert!(RemotingCommand::decode(block(&entries)).is_ok());
}

#[test]
fn header_words_that_do_not_fit_the_frame_are_errors() {
    for frame in [&b""[..], &[0], &[0, 0, 0], &[0, 0, 0, 0], &[0, 0, 0, 0, b'{', b'}'], &[0, 0, 0, 3, b'{', b'}']] {
        bad(Bytes::copy_from_slice(frame));
    }
    bad(Bytes::from_static(&[0, 0xFF, 0xFF, 0xFF, b'{', b'}']));
    for form in 2..=255 {
        assert!(bad(framed(form, b"{}")).contains("unknown form"));
    }
}

#[test]
fn binary_lengths_that_are_negative_or_too_long_are_errors() {
    for length in [-1, i32::MIN, 1, 1000, i32::MAX] {
        bad(binary((length, b""), (0, b"")));
        bad(binary((0, b""), (length, b"")));
        bad(block(&[entry(1, b"k", length, b"")]));
    }
    for length in [-1, i16::MIN, 2, i16::MAX] {
        bad(block(&[entry(length, b"k", 0, b"")]));
    }
    bad(block(&[entry(1, b"k", 1, b"v"), vec![0]]));
    bad(block(&[entry(1, b"k", 1, b"v"), vec![0, 1, b'k', 0, 0]]));
    assert!(bad(block(&[entry(1, b"\xff", 1, b"v")])).contains("UTF-8"));
    assert!(bad(binary((1, b"\xff"), (0, b""))).contains("UTF-8"));
}

#[test]
fn binary_nulls_are_absent_and_bytes_behind_the_fields_are_ignored() {
    let entries = [entry(1, b"a", 1, b"1"), entry(1, b"a", 0, b""), entry(0, b"", 1, b"x"), entry(1, b"b", 1, b"2")];
    let command = RemotingCommand::decode(block(&entries)).unwrap();
    assert_eq!(command.ext_fields, [("b", "2")].into_iter().collect());

    let fields = entry(1, b"k", 1, b"v");
    let mut trailing = fields.clone();
    trailing.extend_from_slice(b"trailing");
    let frame = binary((0, b""), (fields.len() as i32, &trailing));
    let command = RemotingCommand::decode(frame).unwrap();
    assert_eq!(command.ext_fields.get("k"), Some("v"));
    assert!(command.body.is_empty());
}

fn samples() -> Vec<Vec<u8>> {
    let pull =
        PullMessageRequestHeader { consumer_group: "CG", topic: "标签", bname: Some("b"), ..Default::default() };
    let send = SendMessageRequestHeader { topic: "T", properties: Some("KEYS\u{1}k\u{2}"), ..Default::default() };
    let mut samples = Vec::new();
    for form in [SerializeType::Json, SerializeType::Rocketmq] {
        for request in [
            RemotingCommand::request_in_form(form, RequestCode::PULL_MESSAGE, &pull),
            RemotingCommand::request_in_form(form, RequestCode::SEND_MESSAGE_V2, &send).with_body("body".into()),
            RemotingCommand {
                remark: Some("é\n".into()),
                ..RemotingCommand::request_in_form(form, RequestCode(1), &pull)
            },
        ] {
            let mut frame = Vec::new();
            request.encode_head(&mut frame);
            frame.extend_from_slice(&request.body);
            samples.push(frame.split_off(4));
        }
    }
    samples
}

/// Whatever is read can be looked at and written again.
fn poke(frame: Bytes) {
    if let Ok(command) = RemotingCommand::decode(frame) {
        let _ = format!("{command:?}");
        let _ = command.header::<PullMessageRequestHeader<'_>>();
        let _ = command.header::<SendMessageRequestHeader<'_>>();
        let mut out = Vec::new();
        command.encode_head(&mut out);
        out.extend_from_slice(&command.body);
        let again = RemotingCommand::decode(out.split_off(4).into()).unwrap();
        assert_eq!(again.ext_fields, command.ext_fields);
        assert_eq!(again.body, command.body);
    }
}

#[test]
fn every_cut_frame_is_an_error_or_a_command_with_less_body() {
    for sample in samples() {
        for end in 0..sample.len() {
            poke(Bytes::copy_from_slice(&sample[..end]));
            // And with a header word that claims to fit.
            if end > 4 {
                poke(framed(sample[0], &sample[4..end]));
            }
        }
    }
}

#[test]
fn every_changed_byte_is_survived() {
    for sample in samples() {
        for at in 0..sample.len() {
            for byte in [0, b'"', b'\\', b'}', b',', 0x7F, 0xFF] {
                let mut changed = sample.clone();
                changed[at] = byte;
                poke(changed.into());
            }
        }
    }
}

fn any_command() -> impl Strategy<Value = RemotingCommand> {
    let text = prop_oneof!["[ -~]{0,12}", ".{0,8}", "[a-z\\x00-\\x1f\"\\\\]{0,8}"];
    let fields =
        proptest::collection::vec((".{1,6}", text.clone().prop_filter("null in binary", |v| !v.is_empty())), 0..6);
    let numbers = (any::<i16>(), any::<i16>(), any::<i32>(), any::<i32>(), 0i32..14);
    (numbers, proptest::option::of(text), fields, any::<bool>(), proptest::collection::vec(any::<u8>(), 0..20))
        .prop_map(|((code, version, opaque, flag, language), remark, fields, binary, body)| RemotingCommand {
            code: code.into(),
            language: LanguageCode(language),
            version: version.into(),
            opaque,
            flag,
            remark: remark.filter(|remark| !remark.is_empty()),
            ext_fields: fields.into_iter().collect(),
            serialize_type: if binary { SerializeType::Rocketmq } else { SerializeType::Json },
            body: body.into(),
        })
}

proptest! {
    #[test]
    fn a_command_comes_back_as_it_was_in_either_form(command in any_command()) {
        let mut frame = Vec::new();
        command.encode_head(&mut frame);
        frame.extend_from_slice(&command.body);
        prop_assert_eq!(u32::from_be_bytes(*frame.first_chunk().unwrap()) as usize, frame.len() - 4);
        prop_assert_eq!(RemotingCommand::decode(frame.split_off(4).into()).unwrap(), command);
    }

    #[test]
    fn the_quick_and_the_strict_reader_of_json_agree(command in any_command()) {
        let mut frame = Vec::new();
        RemotingCommand { serialize_type: SerializeType::Json, body: Bytes::new(), ..command }.encode_head(&mut frame);
        let quick = RemotingCommand::decode(frame.split_off(4).into()).unwrap();
        let mut out = Vec::new();
        quick.encode_head(&mut out);
        // A blank in front, and the quick one gives up.
        let strict = json(&format!(" {}", str::from_utf8(&out[8..]).unwrap())).unwrap();
        prop_assert_eq!(strict, quick);
    }

    #[test]
    fn any_bytes_are_survived(form in 0u8..3, bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        poke(framed(form, &bytes));
    }

    #[test]
    fn any_almost_json_is_survived(text in r#"\{("(code|opaque|extFields|remark|a)"[:,]?(\{|\}|"x"|-?[0-9]{1,3}|null|\\)?[,\}]?){0,6}"#) {
        poke(framed(0, text.as_bytes()));
    }
}
