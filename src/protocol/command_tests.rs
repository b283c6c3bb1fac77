use super::*;
use crate::protocol::header::*;

// The vectors are what the Java classes of RocketMQ 5.3 wrote.

/// Asks for the route of TopicTest, in JSON.
const JSON_ROUTE: &str = "\
000000a7000000a37b22636f6465223a3130352c226578744669656c6473223a7b22746f706963223a22546f706963546573\
74222c226163636570745374616e646172644a736f6e4f6e6c79223a2274727565227d2c22666c6167223a302c226c616e67\
75616765223a2252555354222c226f7061717565223a312c2273657269616c697a655479706543757272656e74525043223a\
224a534f4e222c2276657273696f6e223a3437397d";

/// The same in binary.
const BINARY_ROUTE: &str = "\
0000004d0100004900690c01df000000010000000000000000000000340005746f70696300000009546f7069635465737400\
166163636570745374616e646172644a736f6e4f6e6c790000000474727565";

/// A pull in binary.
const BINARY_PULL: &str = "\
0000011401000110000b0c01df000000070000000000000000000000fb000d636f6e73756d657247726f7570000000024347\
0005746f70696300000009546f706963546573740007717565756549640000000130000b71756575654f6666736574000000\
023432000a6d61784d73674e756d730000000233320007737973466c61670000000133000c636f6d6d69744f666673657400\
0000023430001473757370656e6454696d656f75744d696c6c6973000000053135303030000a73756256657273696f6e0000\
000d31373030303030303030303030000e65787072657373696f6e5479706500000003544147000b6d61784d736742797465\
73000000063236323134340005626e616d650000000862726f6b65722d61";

/// A send with one-letter names, in JSON; its body is `hi`.
const JSON_SEND: &str = "\
000001420000013c7b22636f6465223a3331302c226578744669656c6473223a7b2261223a225047222c2262223a22546f70\
696354657374222c2263223a22544257313032222c2264223a2234222c2265223a2231222c2266223a2230222c2267223a22\
31373030303030303030303030222c2268223a2230222c2269223a22554e49515f4b45595c7530303031585c753030303257\
4149545c7530303031747275655c7530303032544147535c7530303031546167415c7530303032222c226a223a2230222c22\
6b223a2266616c7365222c226d223a2266616c7365222c226e223a2262726f6b65722d61227d2c22666c6167223a302c226c\
616e6775616765223a2252555354222c226f7061717565223a322c2273657269616c697a655479706543757272656e745250\
43223a224a534f4e222c2276657273696f6e223a3437397d6869";

/// An answer with code 17, in binary.
const BINARY_ERROR: &str = "\
0000004c0100004800110001df0000000900000001000000334e6f20746f70696320726f75746520696e666f20696e206e61\
6d652073657276657220666f722074686520746f7069633a205800000000";

/// The header of an answer to a pull, in JSON; 177 bytes of body follow.
const JSON_PULL_ANSWER: &str = "\
000001ac000000f77b22636f6465223a302c226578744669656c6473223a7b2273756767657374576869636842726f6b6572\
4964223a2230222c2267726f7570537973466c6167223a2230222c226e657874426567696e4f6666736574223a223433222c\
226d61784f6666736574223a223433222c226d696e4f6666736574223a2230222c22746f706963537973466c6167223a2230\
227d2c22666c6167223a312c226c616e6775616765223a224a415641222c226f7061717565223a372c2272656d61726b223a\
22464f554e44222c2273657269616c697a655479706543757272656e74525043223a224a534f4e222c2276657273696f6e22\
3a3437397d";

/// That body.
const STORED_MESSAGE: &str = "\
000000b1daa320a769c865ed0000000300000000000000000000002a0000000000123456000000000000018bcfe568000a00\
00090000c8220000018bcfe568050a00000100002a9f0000000000000000000000000000000e48656c6c6f20526f636b6574\
4d5109546f70696354657374003f544147530154616741024b455953016b31206b3202554e49515f4b455901304130303030\
303930333033303730443046313130303030303030313030324102";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[track_caller]
fn decode(frame: &[u8]) -> RemotingCommand {
    let length = u32::from_be_bytes(*frame.first_chunk().unwrap()) as usize;
    assert_eq!(length, frame.len() - 4);
    RemotingCommand::decode(Bytes::copy_from_slice(&frame[4..])).unwrap()
}

fn encode(command: &RemotingCommand) -> Vec<u8> {
    let mut frame = Vec::new();
    command.encode_head(&mut frame);
    frame.extend_from_slice(&command.body);
    frame
}

fn pull() -> PullMessageRequestHeader<'static> {
    PullMessageRequestHeader {
        consumer_group: "CG",
        topic: "TopicTest",
        queue_id: 0,
        queue_offset: 42,
        max_msg_nums: 32,
        sys_flag: 3,
        commit_offset: 40,
        suspend_timeout_millis: 15_000,
        subscription: None,
        sub_version: 1_700_000_000_000,
        expression_type: Some("TAG"),
        max_msg_bytes: Some(262_144),
        bname: Some("broker-a"),
    }
}

#[test]
fn a_route_request_is_what_java_writes_in_either_form() {
    let header = GetRouteInfoRequestHeader { topic: "TopicTest", accept_standard_json_only: Some(true) };
    for (hex, form) in [(JSON_ROUTE, SerializeType::Json), (BINARY_ROUTE, SerializeType::Rocketmq)] {
        let frame = bytes(hex);
        let mut request = RemotingCommand::request_in_form(form, RequestCode::GET_ROUTEINFO_BY_TOPIC, &header);
        request.opaque = 1;
        let decoded = decode(&frame);
        assert_eq!(decoded, request);
        assert_eq!(decoded.header::<GetRouteInfoRequestHeader<'_>>().unwrap(), header);
        // Byte for byte, because members and fields are in the order that Java happened to use.
        assert_eq!(encode(&request), frame);
        assert_eq!(encode(&decoded), frame);
    }
}

#[test]
fn a_binary_pull_is_what_java_writes() {
    let frame = bytes(BINARY_PULL);
    let mut request = RemotingCommand::request_in_form(SerializeType::Rocketmq, RequestCode::PULL_MESSAGE, &pull());
    request.opaque = 7;
    assert_eq!(decode(&frame), request);
    assert_eq!(encode(&request), frame);
    assert_eq!(decode(&frame).header::<PullMessageRequestHeader<'_>>().unwrap(), pull());
}

#[test]
fn a_send_with_its_separators_is_what_java_writes() {
    let frame = bytes(JSON_SEND);
    let header = SendMessageRequestHeader {
        producer_group: "PG",
        topic: "TopicTest",
        default_topic: "TBW102",
        default_topic_queue_nums: 4,
        queue_id: 1,
        born_timestamp: 1_700_000_000_000,
        properties: Some("UNIQ_KEY\u{1}X\u{2}WAIT\u{1}true\u{2}TAGS\u{1}TagA\u{2}"),
        reconsume_times: Some(0),
        unit_mode: Some(false),
        batch: Some(false),
        bname: Some("broker-a"),
        ..SendMessageRequestHeader::default()
    };
    let mut request = RemotingCommand::request(RequestCode::SEND_MESSAGE_V2, &header).with_body(Bytes::from("hi"));
    request.opaque = 2;
    let decoded = decode(&frame);
    assert_eq!(decoded, request);
    assert_eq!(decoded.header::<SendMessageRequestHeader<'_>>().unwrap(), header);
    let ours = encode(&request);
    assert_eq!(ours.len(), frame.len());
    assert_eq!(decode(&ours), request);
}

#[test]
fn an_error_answer_keeps_its_remark_and_has_no_fields() {
    let frame = bytes(BINARY_ERROR);
    let answer = decode(&frame);
    assert!(answer.is_response() && !answer.is_oneway());
    assert_eq!((answer.response_code(), answer.language), (ResponseCode::TOPIC_NOT_EXIST, LanguageCode::JAVA));
    assert_eq!((answer.version, answer.opaque), (479, 9));
    assert_eq!(answer.remark.as_deref(), Some("No topic route info in name server for the topic: X"));
    assert!(answer.ext_fields.is_empty() && answer.body.is_empty());
    assert_eq!(encode(&answer), frame);
}

#[test]
fn a_pull_answer_shares_its_body_with_the_frame() {
    let frame = bytes(&format!("{JSON_PULL_ANSWER}{STORED_MESSAGE}"));
    let shared = Bytes::copy_from_slice(&frame[4..]);
    let answer = RemotingCommand::decode(shared.clone()).unwrap();
    assert_eq!(answer.body, bytes(STORED_MESSAGE));
    assert_eq!(answer.body.as_ptr(), shared[shared.len() - 177..].as_ptr());
    assert_eq!(answer.remark.as_deref(), Some("FOUND"));
    let header: PullMessageResponseHeader = answer.header().unwrap();
    let expected = PullMessageResponseHeader {
        next_begin_offset: 43,
        max_offset: 43,
        topic_sys_flag: Some(0),
        group_sys_flag: Some(0),
        ..PullMessageResponseHeader::default()
    };
    assert_eq!(header, expected);
    assert_eq!(decode(&encode(&answer)), answer);
    let ours = RemotingCommand::response_with(ResponseCode::SUCCESS, &header);
    assert_eq!(ours.ext_fields, answer.ext_fields);
}

#[test]
fn a_header_without_fields_differs_from_one_with_an_empty_object() {
    let plain = RemotingCommand::response(ResponseCode::SUCCESS, None);
    assert!(!String::from_utf8(encode(&plain)[8..].to_vec()).unwrap().contains("extFields"));
    let empty = RemotingCommand::response_with(ResponseCode::SUCCESS, &GetKVConfigResponseHeader::default());
    assert!(String::from_utf8(encode(&empty)[8..].to_vec()).unwrap().contains("\"extFields\":{},"));
    assert!(decode(&encode(&empty)).ext_fields.is_present());
    assert!(!decode(&encode(&plain)).ext_fields.is_present());
}

#[test]
fn an_unknown_code_or_language_survives_and_a_large_code_needs_json() {
    let mut command = RemotingCommand::request_without_header(RequestCode::POP_MESSAGE);
    command.language = LanguageCode(77);
    command.version = 612;
    assert_eq!(decode(&encode(&command)).request_code(), RequestCode::POP_MESSAGE);
    command.serialize_type = SerializeType::Rocketmq;
    let decoded = decode(&encode(&command));
    assert_eq!((decoded.code, decoded.language, decoded.version), (3442, LanguageCode(77), 612));
}

#[test]
fn flags_and_opaques_make_kinds_of_calls() {
    let (first, second) = (new_opaque(), new_opaque());
    assert_ne!(first, second);
    let request = RemotingCommand::request_without_header(RequestCode::HEART_BEAT).oneway();
    assert!(request.is_oneway() && !request.is_response());
    assert_eq!(request.flag, 2);
    assert_eq!(RemotingCommand::response(ResponseCode::SYSTEM_BUSY, None).with_remark("full").flag, 1);
}

#[test]
fn debug_output_has_neither_body_nor_properties() {
    let header = SendMessageRequestHeader { topic: "T", properties: Some("KEYS\u{1}hush\u{2}"), ..Default::default() };
    let command = RemotingCommand::request(RequestCode::SEND_MESSAGE_V2, &header).with_body(Bytes::from("hush"));
    let text = format!("{command:?} {header:?}");
    assert!(text.contains("SEND_MESSAGE_V2") && text.contains("body_length: 4"), "{text}");
    assert!(!text.contains("hush"), "{text}");
}
