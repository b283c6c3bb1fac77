//! Answers as lines of `field=value`, with what differs from run to run taken out.

use rocketmq_sync::base::fastjson;
use rocketmq_sync::message::store_codec::{DecodeOptions, decode_all};
use rocketmq_sync::protocol::RemotingCommand;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

pub type Fields = BTreeMap<String, String>;

/// The answers of one cluster, by case.
#[derive(Default)]
pub struct Answers(BTreeMap<String, Fields>);

/// Text that stands for another one, such as `TOPIC` for the name that a run made up.
pub struct Names(pub Vec<(String, &'static str)>);

impl Names {
    fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, word) in &self.0 {
            text = text.replace(name.as_str(), word);
        }
        text
    }

    /// A value: names by their words, ids and times by what they are.
    fn value(&self, text: &str) -> String {
        let text = self.apply(text);
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && text.len() == 13 {
            return "TIME".into();
        }
        // An offset message id, or a unique key made from an address of either kind.
        if matches!(text.len(), 32 | 56) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return "ID".into();
        }
        if let Some(port) = text.strip_prefix("127.0.0.1:")
            && port.bytes().all(|byte| byte.is_ascii_digit())
        {
            return "PEER".into();
        }
        text.replace('\n', "\\n")
    }
}

impl Answers {
    pub fn cases(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &Fields)> {
        self.0.iter()
    }

    pub fn get(&self, case: &str) -> Option<&Fields> {
        self.0.get(case)
    }

    pub fn add(&mut self, case: &str, fields: Fields) {
        assert!(self.0.insert(case.to_owned(), fields).is_none(), "two cases are called '{case}'");
    }

    pub fn parse(text: &str) -> Self {
        let mut answers = Self::default();
        let mut case = String::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix("## ") {
                case = name.to_owned();
                answers.add(&case, Fields::new());
            } else if let (Some((field, value)), Some(fields)) = (line.split_once('='), answers.0.get_mut(&case)) {
                fields.insert(field.to_owned(), value.to_owned());
            } else {
                panic!("no answer: {line}");
            }
        }
        answers
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (case, fields) in &self.0 {
            writeln!(f, "## {case}")?;
            for (field, value) in fields {
                writeln!(f, "{field}={value}")?;
            }
        }
        Ok(())
    }
}

/// The fields of an answer, or why there is none. Of a remark only whether there is one: its words are each broker's own.
pub fn fields(answer: &rocketmq_sync::Result<RemotingCommand>, names: &Names) -> Fields {
    let mut fields = Fields::new();
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            fields.insert("code".into(), format!("{:?}", error.kind()));
            return fields;
        }
    };
    fields.insert("code".into(), answer.code.to_string());
    let has_remark = answer.remark.as_ref().is_some_and(|remark| !remark.is_empty());
    fields.insert("remark".into(), if has_remark { "yes" } else { "no" }.into());
    for (name, value) in answer.ext_fields.iter() {
        fields.insert(format!("ext.{name}"), names.value(value));
    }
    body(answer, names, &mut fields);
    fields
}

fn body(answer: &RemotingCommand, names: &Names, fields: &mut Fields) {
    if answer.body.is_empty() {
        fields.insert("body".into(), "none".into());
        return;
    }
    if answer.body.first() != Some(&b'{') {
        let decoded = decode_all(&answer.body, None, 0, &DecodeOptions::default());
        for (index, message) in decoded.messages.iter().enumerate() {
            let text = format!(
                "{} {} at {} of queue {}, flag {}, sys flag {}, tries {}, {} bytes",
                names.apply(message.topic()),
                String::from_utf8_lossy(message.body()),
                message.queue_offset(),
                message.queue_id(),
                message.flag(),
                message.sys_flag(),
                message.reconsume_times(),
                message.body().len(),
            );
            fields.insert(format!("message[{index}]"), text);
            for (name, value) in message.properties() {
                fields.insert(format!("property.{name}[{index}]"), names.value(value));
            }
        }
        let damage = decoded.damage.map_or("none".to_owned(), |damage| damage.reason.to_owned());
        fields.insert("damage".into(), damage);
        return;
    }
    match serde_json::from_slice::<Value>(&fastjson::normalise(&answer.body)) {
        Ok(value) => flatten("body", &value, names, fields),
        Err(error) => {
            fields.insert("body".into(), format!("not JSON: {error}"));
        }
    }
}

fn flatten(path: &str, value: &Value, names: &Names, fields: &mut Fields) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                flatten(&format!("{path}.{}", names.apply(name)), value, names, fields);
            }
        }
        Value::Array(items) => {
            let mut texts: Vec<_> = items.iter().map(|item| names.value(&item.to_string())).collect();
            texts.sort();
            if items.iter().all(Value::is_object) && items.len() == 1 {
                flatten(&format!("{path}[0]"), &items[0], names, fields);
            } else {
                fields.insert(path.to_owned(), format!("[{}]", texts.join(",")));
            }
        }
        Value::String(text) => {
            fields.insert(path.to_owned(), names.value(text));
        }
        other => {
            fields.insert(path.to_owned(), names.value(&other.to_string()));
        }
    }
}
