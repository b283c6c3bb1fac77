use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn normal(text: &str) -> String {
    String::from_utf8(normalise(text.as_bytes()).into_owned()).unwrap()
}

#[test]
fn leaves_json_alone_without_a_copy() {
    for text in ["", "{}", "[]", "null", r#"{"a":{"0":[1,{"b":-2}]},"c":"{0:1}"}"#, r#"{"a":"\"{,0:"}"#] {
        assert!(matches!(normalise(text.as_bytes()), Cow::Borrowed(_)), "{text}");
    }
}

#[test]
fn quotes_integer_keys_at_every_depth_and_nothing_that_looks_like_one() {
    assert_eq!(normal(r#"{0:1}"#), r#"{"0":1}"#);
    assert_eq!(normal(r#"{ 0 : 1 , 12 : 2}"#), r#"{ "0" : 1 , "12" : 2}"#);
    assert_eq!(normal(r#"[{"a":{-1:{7:"x"}}},{0:[1,2,{3:4}]}]"#), r#"[{"a":{"-1":{"7":"x"}}},{"0":[1,2,{"3":4}]}]"#);
    assert_eq!(normal(r#"{0:"{1:\"2\"}",1:",3:"}"#), r#"{"0":"{1:\"2\"}","1":",3:"}"#);
    assert_eq!(normal("{\n  0: 1,\n\t1: 2\n}"), "{\n  \"0\": 1,\n\t\"1\": 2\n}");
}

#[test]
fn makes_a_string_of_an_object_key() {
    assert_eq!(normal(r#"{{"q":1}:{0:{{"r":2}:3}}}"#), r#"{"{\"q\":1}":{"0":{"{\"r\":2}":3}}}"#);
    let text = normal(r#"{{"brokerName":"a\"}\\","queueId":0}:5}"#);
    let value: Value = serde_json::from_str(&text).unwrap();
    let (key, five) = value.as_object().unwrap().iter().next().unwrap();
    assert_eq!(five, 5);
    assert_eq!(serde_json::from_str::<Value>(key).unwrap()["brokerName"], "a\"}\\");
}

#[test]
fn gives_bare_object_keys_back() {
    for text in [r#"{"t":{{"q":"\"x"}:{"n":[1]},{"q":2}:{}},"p":{"k":"{v","{key":1,"{}x":2}}"#, r#"{{"q":1}:0}"#, "{}"]
    {
        let json = normalise(text.as_bytes()).into_owned();
        serde_json::from_slice::<Value>(&json).unwrap();
        assert_eq!(String::from_utf8_lossy(&bare_object_keys(&json)), text);
    }
}

#[test]
fn leaves_damaged_and_bottomless_text_to_the_parser() {
    let deep = "{0:".repeat(100_000);
    let keys = "{".repeat(100_000);
    let closed = format!("{}1{}", "{0:".repeat(5_000), "}".repeat(5_000));
    for text in ["{0", "{0:\"", "{{", "{{\"", "}", "]", ",", "{{}", "{\"a", "{0:1}}", &deep, &keys, &closed] {
        let changed = normalise(text.as_bytes());
        assert!(serde_json::from_slice::<Value>(&changed).is_err(), "{}", &text[..text.len().min(20)]);
    }
}

#[test]
fn grows_no_more_than_twice() {
    let nested = format!("{}1{}", "{".repeat(60), ":1}".repeat(60));
    assert!(normalise(nested.as_bytes()).len() <= nested.len() * 2 + 2);
    let quotes = format!("{{{{\"a\":\"{}\"}}:1}}", "\\\"".repeat(1_000));
    assert!(normalise(quotes.as_bytes()).len() <= quotes.len() * 2 + 2);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = normalise(&bytes);
        let _ = bare_object_keys(&bytes);
    }

    #[test]
    fn any_brackets_and_quotes_are_survived(text in "[{}\\[\\]\",:0-9a\\\\ -]{0,60}") {
        let _ = normalise(text.as_bytes());
        let _ = bare_object_keys(text.as_bytes());
    }
}
