//! The properties of one message while the broker changes them.

use crate::message::properties;
use std::borrow::Cow;
use std::collections::HashMap;

/// Most words of a message's keys that are indexed; upstream indexes all.
const MAX_KEYS: usize = 128;
/// Longer lists are read with an index, since a message may bring thousands of names.
const SHORT: usize = 32;

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
        let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
        for (name, value) in pairs {
            if list.0.len() < SHORT {
                list.set(name, value);
                continue;
            }
            if places.is_empty() {
                places = list.0.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
            }
            let next = list.0.len();
            match *places.entry(name.into()).or_insert(next) {
                at if at == next => list.0.push((name.into(), value.into())),
                at => list.0[at].1 = value.into(),
            }
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

    #[test]
    fn a_long_list_keeps_order_and_the_last_of_equal_names() {
        let one = |number: usize| format!("n{number}\u{1}{number}\u{2}");
        let text: String = (0..40).map(one).collect();
        let list = format!("{text}n3\u{1}x\u{2}n39\u{1}y\u{2}");
        let list = PropertyList::parse(&list);
        assert_eq!(
            (list.0.len(), list.get("n3"), list.get("n39"), list.get("n38")),
            (40, Some("x"), Some("y"), Some("38"))
        );
        assert_eq!(PropertyList::parse(&text).encode(), text);
    }
}
