//! The custom fields of a header (`extFields`): text to text, in the form the wire has them.
//!
//! A request is built, and an answer kept, in the very bytes of one of the two header forms, so that neither side
//! makes a map of strings. The JSON form is kept only while it is *plain*: compact, text values alone, and nothing
//! in it that needs an escape. Whatever else comes along is held in the binary form, which can carry any text.

use crate::protocol::SerializeType;
use crate::protocol::command_header::HeaderFields;
use crate::protocol::entry_buffer::EntryBuffer;
use crate::protocol::key::Key;
use crate::protocol::scan;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// The custom fields of a header. Of a key that occurs twice the last value counts; order carries no meaning.
#[derive(Clone, Default)]
pub struct ExtFields {
    entries: Entries,
    form: SerializeType,
    /// A header may carry an object without members, and Java tells it from none.
    present: bool,
}

#[derive(Clone)]
enum Entries {
    /// Put together here.
    Built(EntryBuffer),
    /// A part of a frame that was checked when it was decoded.
    Received { frame: Bytes, range: Range<usize> },
}

impl Default for Entries {
    fn default() -> Self {
        Self::Built(EntryBuffer::default())
    }
}

/// Names of header fields that are logged as "set", because their values are secrets or the user's.
const REDACTED: [&str; 5] = ["AccessKey", "Signature", "SecurityToken", "properties", "i"];

impl ExtFields {
    /// No fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// No fields, to be built in the given form. A header that is sent in the form it was built in is copied in one
    /// piece; in the other form it is translated entry by entry.
    pub fn in_form(form: SerializeType) -> Self {
        Self { form, ..Self::default() }
    }

    /// Fields inside a received frame. The range must have been checked: in the binary form by
    /// [`check_binary`](scan::check_binary), in the JSON form by the reader of headers.
    pub(crate) fn received(form: SerializeType, frame: Bytes, range: Range<usize>) -> Self {
        Self { entries: Entries::Received { frame, range }, form, present: true }
    }

    /// Whether the header has an object of fields at all, be it an empty one.
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Makes a header without fields carry an empty object, as Java does for header classes whose fields are all null.
    pub fn set_present(&mut self) {
        self.present = true;
    }

    /// Adds a field; a value given before under this key no longer counts.
    pub fn put(&mut self, key: &str, value: &str) {
        if self.form == SerializeType::Json && !(scan::is_plain(key) && scan::is_plain(value)) {
            self.translate(SerializeType::Rocketmq);
        }
        self.present = true;
        let form = self.form;
        self.built().put(form, key, value);
    }

    /// Adds a number.
    pub fn put_int(&mut self, key: &str, value: i64) {
        self.put(key, &value.to_string());
    }

    /// Adds a truth value.
    pub fn put_bool(&mut self, key: &str, value: bool) {
        self.put(key, if value { "true" } else { "false" });
    }

    /// Adds the fields of a header.
    #[inline]
    pub(crate) fn put_header(&mut self, header: &impl HeaderFields) {
        let form = self.form;
        if !self.built().put_header(form, header) {
            self.translate(SerializeType::Rocketmq);
            self.built().put_header(SerializeType::Rocketmq, header);
        }
        self.present |= !self.is_empty();
    }

    /// The value of the field, when it is there. A field without a value (null) is not there.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().filter(|(name, _)| *name == key).last().map(|(_, value)| value)
    }

    /// The fields as they stand, in their order, those that no longer count included.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        // Both sides were checked to be text when they were put or received, so nothing is lost here.
        self.entries().filter_map(|(key, value)| Some((str::from_utf8(key).ok()?, str::from_utf8(value).ok()?)))
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.to_map().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Takes the field away.
    pub fn remove(&mut self, key: &str) {
        if self.get(key).is_none() {
            return;
        }
        let mut rest = Self { form: self.form, present: true, ..Self::default() };
        for (name, value) in self.iter().filter(|(name, _)| *name != key) {
            rest.put(name, value);
        }
        *self = rest;
    }

    /// Starts a walk over the entries.
    #[inline]
    pub(crate) fn entries(&self) -> Walk<'_> {
        Walk { form: self.form, rest: self.bytes() }
    }

    /// The values of the given keys, the last one of each, in whatever order they come.
    pub(crate) fn collect<const N: usize>(&self, keys: &[&'static Key; N]) -> [Option<&[u8]>; N] {
        let mut values = [None; N];
        for (name, value) in self.entries() {
            if let Some(found) = keys.iter().position(|key| key.name().as_bytes() == name) {
                values[found] = Some(value);
            }
        }
        values
    }

    /// The form the entries are kept in, and their bytes.
    ///
    /// Binary: `i16 key length, key, i32 value length, value`, repeated. JSON: one byte, then `"key":"value"`,
    /// repeated; the byte is a brace or comma, and stands for the comma in front of the entry.
    pub(crate) fn raw(&self) -> (SerializeType, &[u8]) {
        (self.form, self.bytes())
    }

    fn bytes(&self) -> &[u8] {
        match &self.entries {
            Entries::Built(buffer) => buffer.as_slice(),
            Entries::Received { frame, range } => frame.get(range.clone()).unwrap_or_default(),
        }
    }

    #[inline]
    fn built(&mut self) -> &mut EntryBuffer {
        if let Entries::Received { .. } = self.entries {
            self.entries = Entries::Built(EntryBuffer::copy_of(self.bytes()));
        }
        match &mut self.entries {
            Entries::Built(buffer) => buffer,
            Entries::Received { .. } => unreachable!("replaced above"),
        }
    }

    #[cold]
    fn translate(&mut self, form: SerializeType) {
        let mut buffer = EntryBuffer::default();
        for (key, value) in self.iter() {
            buffer.put(form, key, value);
        }
        self.entries = Entries::Built(buffer);
        self.form = form;
    }

    fn to_map(&self) -> BTreeMap<&str, &str> {
        self.iter().collect()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for ExtFields {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut fields = Self::new();
        for (key, value) in entries {
            fields.put(key.as_ref(), value.as_ref());
        }
        fields
    }
}

impl PartialEq for ExtFields {
    fn eq(&self, other: &Self) -> bool {
        self.to_map() == other.to_map()
    }
}

impl Eq for ExtFields {}

impl fmt::Debug for ExtFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(key, value)| (key, if REDACTED.contains(&key) { "(set)" } else { value });
        f.debug_map().entries(self.to_map().into_iter().map(shown)).finish()
    }
}

/// A walk over checked entries. Should the check have been forgotten, it ends early instead of panicking.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    form: SerializeType,
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    /// The value of the next entry, when it has this key; otherwise the walk stays where it is.
    #[inline(always)]
    pub(crate) fn value_of(&mut self, key: &'static Key) -> Option<&'a [u8]> {
        let (value, rest) = match self.form {
            SerializeType::Rocketmq => scan::long_part(self.rest.strip_prefix(key.binary())?)?,
            SerializeType::Json => {
                // The byte in front is a brace or a comma.
                let rest = self.rest.get(1..)?.strip_prefix(key.json_after_comma())?;
                let (value, rest) = rest.split_at_checked(scan::find_quote(rest)?)?;
                (value, rest.get(1..)?)
            }
        };
        self.rest = rest;
        Some(value)
    }

    /// Whether every entry was taken.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value, rest) = match self.form {
            SerializeType::Rocketmq => scan::split_entry(self.rest)?,
            SerializeType::Json => {
                let rest = self.rest.get(2..)?;
                let (key, rest) = rest.split_at_checked(scan::find_quote(rest)?)?;
                let rest = rest.get(3..)?;
                let (value, rest) = rest.split_at_checked(scan::find_quote(rest)?)?;
                (key, value, rest.get(1..)?)
            }
        };
        self.rest = rest;
        Some((key, value))
    }
}

#[cfg(test)]
#[path = "ext_fields_tests.rs"]
mod tests;
