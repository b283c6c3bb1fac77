//! What a producer sends.

use super::properties::{self, NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A message to send: a topic, a body, and properties in the order they were set.
///
/// The setters chain. What cannot be sent, such as a tag with a control character that separates properties, is
/// remembered and reported when the message is sent, or before by [`check`](Self::check).
///
/// ```
/// use rocketmq_sync::Message;
/// let message = Message::new("orders", "one espresso").with_tags("drinks").with_key("table-7");
/// assert_eq!(message.tags(), Some("drinks"));
/// assert!(message.check().is_ok());
/// assert!(message.with_property("TAGS", "food").check().is_err());
/// ```
#[derive(Clone)]
#[doc(alias = "org.apache.rocketmq.common.message.Message")]
pub struct Message {
    topic: Arc<str>,
    body: Bytes,
    flag: i32,
    properties: Vec<(Cow<'static, str>, String)>,
    /// The first thing that a setter refused.
    refused: Option<Error>,
}

impl Message {
    /// A message with this body for a topic. The body is shared, not copied, when it is [`Bytes`], a `Vec<u8>`, a
    /// `String` or static.
    pub fn new(topic: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Self {
        Self { topic: topic.into(), body: body.into(), flag: 0, properties: Vec::new(), refused: None }
    }

    /// Sets the tag, by which consumers choose. An empty one means no tag.
    #[must_use]
    pub fn with_tags(self, tags: impl Into<String>) -> Self {
        self.with_checked(properties::TAGS, tags.into())
    }

    /// Adds a key, by which the message can be looked up. A key with blanks counts as several.
    #[must_use]
    pub fn with_key(mut self, key: impl AsRef<str>) -> Self {
        let key = key.as_ref();
        match self.properties.iter_mut().find(|(name, _)| name == properties::KEYS) {
            Some((_, keys)) if !key.is_empty() => {
                keys.push(' ');
                keys.push_str(key);
                if let Err(error) = check_value(properties::KEYS, key) {
                    self.refuse(error);
                }
                self
            }
            Some(_) => self,
            None => self.with_checked(properties::KEYS, key.to_owned()),
        }
    }

    /// Sets the keys, by which the message can be looked up, in place of those it has.
    #[must_use]
    pub fn with_keys<K: AsRef<str>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.remove_raw_property(properties::KEYS);
        keys.into_iter().fold(self, |message, key| message.with_key(key))
    }

    /// Has the broker deliver the message only after the delay of this level; 0 means at once. Brokers define the
    /// levels; by default 1 to 18 stand for 1 s, 5 s, 10 s, 30 s, 1 to 10 min, 20 min, 30 min, 1 h and 2 h.
    #[must_use]
    pub fn with_delay_level(mut self, level: u32) -> Self {
        match level {
            0 => drop(self.remove_raw_property(properties::DELAY_TIME_LEVEL)),
            level => self.set_raw_property(properties::DELAY_TIME_LEVEL, level.to_string()),
        }
        self
    }

    /// Whether the broker answers only when the message is as safe as it is set up to make it (the default).
    #[must_use]
    pub fn with_wait_store(mut self, wait: bool) -> Self {
        self.set_raw_property(properties::WAIT_STORE_MSG_OK, wait.to_string());
        self
    }

    /// Sets the flag, a number that RocketMQ carries but never looks at.
    #[must_use]
    pub fn with_flag(mut self, flag: i32) -> Self {
        self.flag = flag;
        self
    }

    /// Sets a property of the user's own. Refused, and so reported by [`check`](Self::check) and by every send: an
    /// empty name or value, the characters U+0001 and U+0002, and the names in use by the system.
    #[must_use]
    pub fn with_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        match check_user_property(&name, &value) {
            Ok(()) => self.set_raw_property(name, value),
            Err(error) => self.refuse(error),
        }
        self
    }

    /// Whether every setter took its value.
    ///
    /// # Errors
    /// [`ErrorKind::MessageIllegal`] with the first value that was refused.
    pub fn check(&self) -> Result<()> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The topic, to be shared.
    pub fn shared_topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The flag.
    pub fn flag(&self) -> i32 {
        self.flag
    }

    /// The value of a property.
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All properties in the order they were set, those of tag, keys and delay included.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        self.properties.iter().map(|(name, value)| (name.as_ref(), value.as_str()))
    }

    /// The tag.
    pub fn tags(&self) -> Option<&str> {
        self.property(properties::TAGS)
    }

    /// The keys, separated by blanks.
    pub fn keys(&self) -> Option<&str> {
        self.property(properties::KEYS)
    }

    /// The delay level, 0 for none.
    pub fn delay_level(&self) -> u32 {
        self.property(properties::DELAY_TIME_LEVEL).and_then(|level| level.parse().ok()).unwrap_or(0)
    }

    /// Whether the broker is to answer only when the message is as safe as it is set up to make it.
    pub fn wait_store(&self) -> bool {
        self.property(properties::WAIT_STORE_MSG_OK) != Some("false")
    }

    /// The id that the client made, once the message was sent.
    pub fn unique_key(&self) -> Option<&str> {
        self.property(properties::UNIQ_KEY)
    }

    /// The properties as they go on the wire.
    pub fn properties_string(&self) -> String {
        let length = self.properties.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        let mut out = String::with_capacity(length);
        properties::encode(self.properties(), &mut out);
        out
    }

    /// Sets any property, in place of the value it has. For the client's own names; nothing is checked.
    pub(crate) fn set_raw_property(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        match self.properties.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.properties.push((name, value)),
        }
    }

    /// Takes a property away.
    pub(crate) fn remove_raw_property(&mut self, name: &str) -> Option<String> {
        let at = self.properties.iter().position(|(known, _)| known == name)?;
        Some(self.properties.remove(at).1)
    }

    fn with_checked(mut self, name: &'static str, value: String) -> Self {
        match check_value(name, &value) {
            // An empty value does not survive the wire.
            Ok(()) if value.is_empty() => drop(self.remove_raw_property(name)),
            Ok(()) => self.set_raw_property(name, value),
            Err(error) => self.refuse(error),
        }
        self
    }

    fn refuse(&mut self, error: Error) {
        self.refused.get_or_insert(error);
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("topic", &self.topic)
            .field("body_len", &self.body.len())
            .field("flag", &self.flag)
            .field("properties", &self.properties.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

fn check_user_property(name: &str, value: &str) -> Result<()> {
    if name.is_empty() || value.is_empty() {
        return Err(illegal(format!("property '{name}' has an empty name or value, which does not survive the wire")));
    }
    if properties::is_reserved(name) {
        return Err(illegal(format!("property '{name}' belongs to the system; choose another name")));
    }
    check_value(name, name)?;
    check_value(name, value)
}

fn check_value(name: &str, text: &str) -> Result<()> {
    match text.find([NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR]) {
        Some(at) => Err(illegal(format!(
            "property {name:?} holds U+000{} at byte {at}, which separates properties; leave it out",
            text.as_bytes()[at]
        ))),
        None => Ok(()),
    }
}

fn illegal(text: String) -> Error {
    Error::new(ErrorKind::MessageIllegal, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_properties_in_the_order_they_were_set() {
        let message = Message::new("t", "b")
            .with_property("z", "1")
            .with_tags("A")
            .with_property("a", "2")
            .with_tags("B")
            .with_wait_store(false)
            .with_delay_level(3);
        assert_eq!(
            message.properties_string(),
            "z\u{1}1\u{2}TAGS\u{1}B\u{2}a\u{1}2\u{2}WAIT\u{1}false\u{2}DELAY\u{1}3\u{2}"
        );
        assert_eq!(message.delay_level(), 3);
        assert!(!message.wait_store());
        assert_eq!(message.with_delay_level(0).with_tags("").properties().count(), 3);
    }

    #[test]
    fn joins_keys_with_blanks() {
        let message = Message::new("t", "b").with_key("a").with_key("").with_key("b");
        assert_eq!(message.keys(), Some("a b"));
        assert_eq!(message.with_keys(["c", "d"]).keys(), Some("c d"));
        assert_eq!(Message::new("t", "b").with_keys([""]).keys(), None);
    }

    #[test]
    fn reports_the_first_value_it_refused() {
        let message = Message::new("t", "b").with_property("k\u{1}", "v").with_property("", "v");
        let error = message.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MessageIllegal);
        assert_eq!(
            error.to_string(),
            "property \"k\\u{1}\" holds U+0001 at byte 1, which separates properties; leave it out"
        );

        let bad = [
            Message::new("t", "b").with_tags("a\u{2}b"),
            Message::new("t", "b").with_key("a\u{2}b"),
            Message::new("t", "b").with_key("a").with_key("\u{1}"),
            Message::new("t", "b").with_keys(["a", "\u{1}"]),
            Message::new("t", "b").with_property("k", "\u{2}"),
            Message::new("t", "b").with_property("k", ""),
            Message::new("t", "b").with_property("UNIQ_KEY", "1"),
        ];
        for message in bad {
            assert!(message.check().is_err(), "{message:?}");
        }
    }

    #[test]
    fn debug_shows_neither_body_nor_values() {
        let text = format!("{:?}", Message::new("t", "hidden").with_property("name", "secret"));
        assert!(text.contains("name") && !text.contains("secret") && !text.contains("hidden"), "{text}");
    }
}
