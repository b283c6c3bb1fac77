//! The properties of one message while the broker changes them.

use crate::message::properties;
use std::borrow::Cow;

/// Most words of a message's keys that are indexed; upstream indexes all.
const MAX_KEYS: usize = 128;

/// Names and values in their order, each name once. Values are borrowed from the request as long as they stay.
#[derive(Debug, Clone, Default)]
pub(crate) struct PropertyList<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> PropertyList<'a> {
    /// Reads a property string; of equal names the last value counts.
    pub(crate) fn parse(text: &'a str) -> Self {
        properties::parse(text).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Sets a property; the place of one that is there already is kept.
    pub(crate) fn set(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// As a property string.
    pub(crate) fn encode(&self) -> String {
        let length = self.0.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
        let mut out = String::with_capacity(length);
        properties::encode(self.0.iter().map(|(name, value)| (&**name, &**value)), &mut out);
        out
    }

    /// What the key index of a broker has of these properties: the unique key and every word of the keys.
    pub(crate) fn index_keys(&self) -> impl Iterator<Item = &str> {
        index_keys(|name| self.get(name))
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for PropertyList<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        let mut list = Self(Vec::with_capacity(16));
        for (name, value) in pairs {
            list.set(name, value);
        }
        list
    }
}

/// The keys under which a message with these properties can be found.
pub(crate) fn index_keys<'p>(property: impl Fn(&str) -> Option<&'p str>) -> impl Iterator<Item = &'p str> {
    let words = property(properties::KEYS).unwrap_or_default().split(' ').filter(|word| !word.is_empty());
    property(properties::UNIQ_KEY).into_iter().chain(words.take(MAX_KEYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_properties_in_place() {
        let mut list = PropertyList::parse("a\u{1}1\u{2}KEYS\u{1}k1  k2\u{2}a\u{1}2\u{2}gone\u{1}x\u{2}");
        list.set("UNIQ_KEY", "u");
        list.remove("gone");
        assert_eq!(list.get("a"), Some("2"));
        assert_eq!(list.encode(), "a\u{1}2\u{2}KEYS\u{1}k1  k2\u{2}UNIQ_KEY\u{1}u\u{2}");
        assert_eq!(list.index_keys().collect::<Vec<_>>(), ["u", "k1", "k2"]);
    }
}
