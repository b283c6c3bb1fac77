//! `{"$ref":"$.path"}`, which fastjson writes in place of an object that it has written before in the same text.
//!
//! `@` is the object that holds the reference, `..` the container of that, `$` the root; anything else is a path from
//! the root: `.name` and `[index]`, where every character of a name but ASCII letters, digits and those above U+0080
//! has a backslash in front of it. `.null` is the one key of a map whose keys are objects.

use serde_json::{Map, Value};

/// Most values that references may add to one text. Real texts have a handful; nested ones could double at each level.
const MOST_VALUES: usize = 100_000;
/// Deepest path that is followed, and deepest nesting that is looked into.
const DEEPEST: usize = 128;

/// Replaces every reference by a copy of what it names. One that names nothing, or names another reference, is taken
/// out together with its member, and logged. In keys, `normalise` has made strings of references; they are replaced, too.
pub fn resolve_references(root: &mut Value) {
    let original = root.clone();
    let mut resolver = Resolver { root: &original, left: MOST_VALUES, trail: Vec::new() };
    if resolver.replace(root, &original) == Outcome::Drop {
        *root = Value::Null;
    }
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Keep,
    Drop,
}

struct Resolver<'a> {
    root: &'a Value,
    left: usize,
    /// The containers around the value at hand, outermost first, as they were before anything was replaced.
    trail: Vec<&'a Value>,
}

impl<'a> Resolver<'a> {
    /// Works on `value`; `original` is the same place in the untouched tree.
    fn replace(&mut self, value: &mut Value, original: &'a Value) -> Outcome {
        if let Some(path) = reference(original) {
            return match self.target(path).and_then(|target| self.copy(target)) {
                Some(copy) => {
                    *value = copy;
                    Outcome::Keep
                }
                None => {
                    log::warn!("dropped a JSON member: its reference '{}' names nothing usable", path.escape_debug());
                    Outcome::Drop
                }
            };
        }
        if self.trail.len() >= DEEPEST {
            return Outcome::Drop;
        }
        self.trail.push(original);
        match (value, original) {
            (Value::Array(items), Value::Array(originals)) => {
                let mut originals = originals.iter();
                items.retain_mut(|item| match originals.next() {
                    Some(original) => self.replace(item, original) == Outcome::Keep,
                    None => true,
                });
            }
            (Value::Object(members), Value::Object(originals)) => {
                let mut replaced = Map::new();
                for ((key, mut item), original) in std::mem::take(members).into_iter().zip(originals.values()) {
                    let Some(key) = self.key(key) else { continue };
                    if self.replace(&mut item, original) == Outcome::Keep {
                        replaced.insert(key, item);
                    }
                }
                *members = replaced;
            }
            _ => {}
        }
        self.trail.pop();
        Outcome::Keep
    }

    /// The key itself, or the one it refers to.
    fn key(&self, key: String) -> Option<String> {
        if !key.starts_with("{\"$ref\"") {
            return Some(key);
        }
        let object: Value = serde_json::from_str(&key).ok()?;
        let path = reference(&object)?;
        let steps = steps(path)?;
        let (last, before) = steps.split_last()?;
        let found = match (self.walk(before)?, last) {
            (Value::Object(map), Step::Name(name)) if name == "null" && map.len() == 1 => map.keys().next().cloned(),
            _ => self.walk(&steps).map(Value::to_string),
        };
        found.filter(|found| !found.starts_with("{\"$ref\""))
    }

    fn target(&self, path: &str) -> Option<&'a Value> {
        // The trail ends with the container that holds the reference as a member.
        match path {
            "@" => self.trail.last().copied(),
            ".." => self.trail.iter().rev().nth(1).copied(),
            "$" => Some(self.root),
            path => self.walk(&steps(path)?),
        }
    }

    fn walk(&self, steps: &[Step]) -> Option<&'a Value> {
        steps.iter().try_fold(self.root, |value, step| match (value, step) {
            (Value::Array(items), Step::Index(index)) => items.get(*index),
            (Value::Object(map), Step::Index(index)) => map.get(&index.to_string()),
            (Value::Object(map), Step::Name(name)) => map.get(name),
            _ => None,
        })
    }

    /// A copy without the references in it: what they name would need to be followed, and may enclose the copy.
    fn copy(&mut self, value: &Value) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        Some(match value {
            value if reference(value).is_some() => return None,
            Value::Array(items) => Value::Array(items.iter().filter_map(|item| self.copy(item)).collect()),
            Value::Object(members) => {
                let copies = members.iter().filter_map(|(key, item)| Some((key.clone(), self.copy(item)?)));
                Value::Object(copies.collect())
            }
            scalar => scalar.clone(),
        })
    }
}

/// The path of a reference: an object with the one member `$ref`.
fn reference(value: &Value) -> Option<&str> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.get("$ref")?.as_str()
}

enum Step {
    Name(String),
    Index(usize),
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == DEEPEST {
            return None;
        }
        if let Some(bracket) = rest.strip_prefix('[') {
            let (index, after) = bracket.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = after;
            continue;
        }
        let mut name = String::new();
        let mut characters = rest.strip_prefix('.')?.chars();
        loop {
            let before = characters.as_str();
            match characters.next() {
                Some('\\') => name.push(characters.next()?),
                Some('.' | '[') | None => {
                    rest = before;
                    break;
                }
                Some(character) => name.push(character),
            }
        }
        steps.push(Step::Name(name));
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::fastjson::normalise;

    fn resolved(text: &str) -> String {
        let mut value: Value = serde_json::from_slice(&normalise(text.as_bytes())).unwrap();
        resolve_references(&mut value);
        value.to_string()
    }

    #[test]
    fn follows_names_indexes_and_escaped_names() {
        assert_eq!(resolved(r#"{"a":[{"x":1},2],"b":{"$ref":"$.a[0]"}}"#), r#"{"a":[{"x":1},2],"b":{"x":1}}"#);
        assert_eq!(
            resolved(r#"{"t":{"broker-a":{"x":1}},"u":{"$ref":"$.t.broker\\-a"}}"#),
            r#"{"t":{"broker-a":{"x":1}},"u":{"x":1}}"#
        );
        assert_eq!(resolved(r#"{"m":{3:{"x":1}},"n":[{"$ref":"$.m[3]"}]}"#), r#"{"m":{"3":{"x":1}},"n":[{"x":1}]}"#);
        assert_eq!(resolved(r#"{"m":{"3":{"x":1}},"n":{"$ref":"$.m.3"}}"#), r#"{"m":{"3":{"x":1}},"n":{"x":1}}"#);
    }

    #[test]
    fn puts_the_key_in_that_another_map_had() {
        assert_eq!(
            resolved(r#"{"p":{{"q":1}:{"a":1}},"t":{{"$ref":"$.p.null"}:{"b":2}}}"#),
            r#"{"p":{"{\"q\":1}":{"a":1}},"t":{"{\"q\":1}":{"b":2}}}"#
        );
    }

    #[test]
    fn takes_out_what_names_nothing_or_another_reference() {
        assert_eq!(resolved(r#"{"a":{"$ref":"$.nope"},"b":1}"#), r#"{"b":1}"#);
        assert_eq!(resolved(r#"{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}"#), "{}");
        assert_eq!(resolved(r#"[{"$ref":"$[9]"},{"$ref":"$.."},{"$ref":"nonsense"},{"$ref":"$.a\\"},1]"#), "[1]");
        assert_eq!(resolved(r#"{"$ref":"$"}"#), "null");
        assert_eq!(resolved(r#"{"t":{{"$ref":"$.p.null"}:1},"u":1}"#), r#"{"t":{},"u":1}"#);
    }

    #[test]
    fn copies_an_enclosing_container_once_without_the_reference_in_it() {
        assert_eq!(resolved(r#"{"o":{"x":1,"me":{"$ref":"@"}}}"#), r#"{"o":{"me":{"x":1},"x":1}}"#);
        assert_eq!(resolved(r#"{"x":1,"o":{"up":{"$ref":".."}}}"#), r#"{"o":{"up":{"o":{},"x":1}},"x":1}"#);
    }

    #[test]
    fn stops_at_the_limit_when_references_multiply_the_text() {
        let many = vec![r#"{"$ref":"$.a"}"#; 10_000].join(",");
        let text = format!(r#"{{"a":[{}],"b":[{many}]}}"#, vec!["1"; 1_000].join(","));
        let mut value: Value = serde_json::from_str(&text).unwrap();
        resolve_references(&mut value);
        assert!(value["b"].as_array().unwrap().len() <= MOST_VALUES / 1_000);
    }
}
