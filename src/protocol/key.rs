//! Names of header fields that are known when this crate is compiled, with their bytes in both forms.

/// Room for the bytes of a key in either form. One size for all keys, so that they are copied by fixed instructions.
pub(crate) const KEY_ROOM: usize = 32;

/// A field name, made by [`key!`].
#[derive(Debug)]
pub(crate) struct Key {
    name: &'static str,
    /// `,"name":"`
    json: [u8; KEY_ROOM],
    /// The length as `i16`, then the name.
    binary: [u8; KEY_ROOM],
}

/// Makes a `&'static Key` of a literal.
macro_rules! key {
    ($name:literal) => {{
        const KEY: &$crate::protocol::key::Key = &$crate::protocol::key::Key::new($name);
        KEY
    }};
}

pub(crate) use key;

impl Key {
    /// Refuses, at compile time, what is too long or would need an escape in the JSON form.
    pub(crate) const fn new(name: &'static str) -> Self {
        let text = name.as_bytes();
        assert!(!text.is_empty() && text.len() + 5 <= KEY_ROOM, "a key has from 1 to 27 bytes");
        let (mut json, mut binary) = ([0; KEY_ROOM], [0; KEY_ROOM]);
        json[0] = b',';
        json[1] = b'"';
        binary[1] = text.len() as u8;
        let mut at = 0;
        while at < text.len() {
            assert!(text[at] > b' ' && text[at] < 0x7F && text[at] != b'"' && text[at] != b'\\', "a key is plain");
            json[at + 2] = text[at];
            binary[at + 2] = text[at];
            at += 1;
        }
        json[at + 2] = b'"';
        json[at + 3] = b':';
        json[at + 4] = b'"';
        Self { name, json, binary }
    }

    #[inline(always)]
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// The room with the JSON form, and how much of it counts.
    #[inline(always)]
    pub(crate) const fn json_room(&self) -> (&[u8; KEY_ROOM], usize) {
        (&self.json, self.name.len() + 5)
    }

    /// The JSON form without its comma.
    #[inline(always)]
    pub(crate) fn json_after_comma(&self) -> &[u8] {
        &self.json[1..self.name.len() + 5]
    }

    /// The room with the binary form, and how much of it counts.
    #[inline(always)]
    pub(crate) const fn binary_room(&self) -> (&[u8; KEY_ROOM], usize) {
        (&self.binary, self.name.len() + 2)
    }

    /// The binary form.
    #[inline(always)]
    pub(crate) fn binary(&self) -> &[u8] {
        &self.binary[..self.name.len() + 2]
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_key_knows_its_bytes_in_both_forms() {
        let key = key!("queueId");
        assert_eq!(key.name(), "queueId");
        assert_eq!(key.json_after_comma(), b"\"queueId\":\"");
        assert_eq!(key.binary(), b"\0\x07queueId");
        let (room, length) = key.json_room();
        assert_eq!(&room[..length], b",\"queueId\":\"");
    }
}
