//! Entries of custom fields while they are put together.

use crate::protocol::SerializeType;
use crate::protocol::command_header::HeaderFields;
use crate::protocol::entry_form::{AROUND, Binary, EntryForm, Json};
use crate::protocol::writer::SLACK;

/// Room that headers rarely need more of, so that fields added to them later need no other allocation.
const FIRST_ROOM: usize = 448;

/// Entries in one of the two forms, which every call names again.
#[derive(Clone, Default)]
pub(crate) struct EntryBuffer {
    /// What is behind `len` is room.
    bytes: Vec<u8>,
    len: usize,
}

impl EntryBuffer {
    pub(crate) fn copy_of(entries: &[u8]) -> Self {
        Self { bytes: entries.to_vec(), len: entries.len() }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Adds an entry. In the JSON form both sides must be plain.
    pub(crate) fn put(&mut self, form: SerializeType, key: &str, value: &str) {
        let (out, at) = self.room(key.len() + value.len() + AROUND);
        self.len = match form {
            SerializeType::Json => Json::entry(out, at, key, value),
            SerializeType::Rocketmq => Binary::entry(out, at, key, value),
        };
    }

    /// Adds the fields of a header. False, and nothing is added, when one of them is not plain and the form is JSON.
    #[inline]
    pub(crate) fn put_header(&mut self, form: SerializeType, header: &impl HeaderFields) -> bool {
        let (out, at) = self.room(header.room());
        let (end, plain) = match form {
            SerializeType::Json => header.put::<Json>(out, at),
            SerializeType::Rocketmq => header.put::<Binary>(out, at),
        };
        if plain {
            self.len = end;
        }
        plain
    }

    /// The bytes, and where to go on writing, with that much room and some slack.
    #[inline]
    fn room(&mut self, room: usize) -> (&mut [u8], usize) {
        if self.bytes.len() - self.len < room + SLACK {
            self.grow(room + SLACK);
        }
        (&mut self.bytes, self.len)
    }

    fn grow(&mut self, room: usize) {
        if self.bytes.is_empty() {
            // Not of zeros: allocators hand those out by a path that is slow for small sizes.
            self.bytes = vec![b' '; room.max(FIRST_ROOM)];
        } else {
            self.bytes.resize((self.len + room).max(2 * self.bytes.len()), 0);
        }
    }
}
