use super::*;
use std::collections::BTreeMap;

/// Runs each line of the answers that the real filter gave.
#[test]
fn says_what_the_filter_of_a_real_broker_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/sql92.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.split('\t');
        let (expected, condition, list) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let condition = condition.replace("\\n", "\n").replace("\\f", "\u{c}");
        let properties: BTreeMap<&str, &str> = list.split(',').filter_map(|pair| pair.split_once('=')).collect();
        let said = match Sql92::compile(&condition) {
            Err(_) => "X",
            Ok(sql) => {
                let mut values = vec![None; sql.names.len()];
                sql.names.iter().for_each(|(name, at)| values[*at] = properties.get(&**name).copied());
                let (said, matches) = match eval::evaluate(&sql.root, &values) {
                    Ok(eval::Value::Bool(true)) => ("T", true),
                    Ok(eval::Value::Bool(false)) => ("F", false),
                    Ok(eval::Value::Null) => ("U", false),
                    Ok(other) => panic!("{condition}: no truth value but {other:?}"),
                    Err(eval::Failed) => ("E", false),
                };
                let pairs = properties.iter().map(|(name, value)| (*name, *value));
                assert_eq!(sql.matches(pairs), matches, "{condition}");
                said
            }
        };
        if said != expected {
            wrong.push(format!("{said} instead of {line}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn says_what_is_wrong_and_where() {
    for (condition, part) in [
        ("a > 'x'", "only numbers and properties"),
        ("a >", "ends where a property, a value or a bracket"),
        ("a # 1", "'#' at byte 2"),
        ("a = 'x", "has no end"),
        ("5", "where a condition is needed"),
        ("a = 99999999999999999999", "too large"),
        ("a between 5 and 1", "5 is more than 1"),
    ] {
        let error = Sql92::compile(condition).unwrap_err();
        assert!(error.contains(part), "{condition}: {error}");
    }
}

#[test]
fn length_and_nesting_are_bounded() {
    let nested = |levels| format!("{}a = 1{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Sql92::compile(&nested(50)).is_ok());
    for condition in [
        nested(4000),
        format!("{}a", "not ".repeat(1000)),
        format!("a = {}1", "-".repeat(4000)),
        format!("a{}", " is null".repeat(900)),
        format!("a = 1{}", " or a = 1".repeat(900)),
    ] {
        let outcome = Sql92::compile(&condition);
        let is_flat = condition.contains(" or ") && condition.len() <= MAX_LENGTH;
        assert_eq!(outcome.is_ok(), is_flat, "{:.30}: {outcome:?}", condition);
    }
    assert!(Sql92::compile(&format!("a = 1{}", " or a = 1".repeat(800))).is_ok());
}

#[test]
fn no_text_makes_it_panic() {
    let pieces = ["a", "'", "''", "not ", "(", ")", "between ", "1", "-", ".", "e", " and ", "é", "\u{0}", "/*", "--"];
    let mut state = 92_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        if let Ok(sql) = Sql92::compile(&text) {
            sql.matches([("a", "1"), ("e", "x")].into_iter());
        }
    }
}
