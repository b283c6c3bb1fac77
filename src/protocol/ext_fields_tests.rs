use super::*;
use crate::protocol::key::key;
use proptest::prelude::*;

const FORMS: [SerializeType; 2] = [SerializeType::Json, SerializeType::Rocketmq];

#[test]
fn of_a_key_that_occurs_twice_the_last_value_counts() {
    for form in FORMS {
        let mut fields = ExtFields::in_form(form);
        fields.put("a", "1");
        fields.put("b", "2");
        fields.put("a", "3");
        assert_eq!(fields.get("a"), Some("3"));
        assert_eq!(fields.len(), 2);
        assert_eq!(fields.iter().count(), 3);
        assert_eq!(fields.collect(&[key!("a"), key!("b"), key!("c")]), [Some(&b"3"[..]), Some(b"2"), None]);
        assert_eq!(fields, [("b", "2"), ("a", "3")].into_iter().collect());
        fields.remove("a");
        assert_eq!((fields.get("a"), fields.get("b"), fields.len()), (None, Some("2"), 1));
    }
}

#[test]
fn what_needs_an_escape_is_kept_as_well_as_what_does_not() {
    for (key, value) in [("k", "a\u{1}b\u{2}"), ("q\"", "v"), ("k", "back\\slash"), ("k", "line\nend"), ("标签", "😀")]
    {
        for form in FORMS {
            let mut fields = ExtFields::in_form(form);
            fields.put("before", "1");
            fields.put(key, value);
            fields.put_int("after", -2);
            fields.put_bool("last", true);
            let expected = [("before", "1"), (key, value), ("after", "-2"), ("last", "true")];
            assert_eq!(fields.iter().collect::<Vec<_>>(), expected);
        }
    }
}

#[test]
fn an_empty_value_is_a_value_while_it_is_not_on_the_wire() {
    for form in FORMS {
        let mut fields = ExtFields::in_form(form);
        fields.put("k", "");
        assert_eq!((fields.get("k"), fields.len(), fields.is_empty()), (Some(""), 1, false));
    }
}

#[test]
fn no_fields_and_an_object_without_members_are_told_apart_but_equal() {
    let none = ExtFields::new();
    let mut empty = ExtFields::new();
    empty.set_present();
    assert!(!none.is_present() && empty.is_present());
    assert!(none.is_empty() && empty.is_empty());
    assert_eq!(none, empty);
}

#[test]
fn debug_output_shows_fields_but_no_secrets_and_no_properties() {
    let text = format!(
        "{:?}",
        [("topic", "T"), ("Signature", "hush"), ("AccessKey", "hush"), ("SecurityToken", "hush"), ("i", "hush")]
            .into_iter()
            .collect::<ExtFields>()
    );
    assert!(text.contains("\"topic\": \"T\"") && text.contains("Signature"), "{text}");
    assert!(!text.contains("hush"), "{text}");
}

#[test]
fn an_over_long_key_is_cut_where_its_length_still_fits() {
    let mut fields = ExtFields::in_form(SerializeType::Rocketmq);
    fields.put(&"é".repeat(20_000), "v");
    let keys: Vec<usize> = fields.iter().map(|(key, _)| key.len()).collect();
    assert_eq!(keys, [32_766]);
}

proptest! {
    #[test]
    fn both_forms_hold_the_same_as_a_map(entries in proptest::collection::vec((".{1,6}", ".{0,12}"), 0..12)) {
        let expected: BTreeMap<&str, &str> = entries.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        for form in FORMS {
            let mut fields = ExtFields::in_form(form);
            for (key, value) in &entries {
                fields.put(key, value);
            }
            prop_assert_eq!(&fields.to_map(), &expected);
            for (key, value) in &expected {
                prop_assert_eq!(fields.get(key), Some(*value));
            }
            let clone = fields.clone();
            fields.translate(SerializeType::Rocketmq);
            prop_assert_eq!(fields, clone);
        }
    }
}
