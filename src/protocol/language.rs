//! The language a peer says it is written in.

use crate::protocol::wire_enum::wire_enum;
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

wire_enum! {
    /// The language of a peer: a byte in the binary header, a name in JSON.
    #[doc(alias = "org.apache.rocketmq.remoting.protocol.LanguageCode")]
    pub struct LanguageCode {
        JAVA = 0,
        /// A broker pushes offset resets in list form to an administrator of this language.
        CPP = 1,
        DOTNET = 2,
        PYTHON = 3,
        DELPHI = 4,
        ERLANG = 5,
        RUBY = 6,
        OTHER = 7,
        HTTP = 8,
        GO = 9,
        PHP = 10,
        OMS = 11,
        RUST = 12,
        NODE_JS = 13,
        /// A name this crate does not know. Not a value of the protocol: it is written as `OTHER`.
        UNKNOWN = -1,
    }
}

impl LanguageCode {
    /// The language of that name, in either case; [`UNKNOWN`](Self::UNKNOWN) for any other.
    pub fn from_name(name: &str) -> Self {
        let known = Self::ALL.iter().find(|language| language.wire_name().eq_ignore_ascii_case(name));
        known.copied().unwrap_or(Self::UNKNOWN)
    }

    /// The name as JSON has it; `OTHER` for what has none.
    pub fn wire_name(self) -> &'static str {
        match self.name() {
            Some(name) if self != Self::UNKNOWN => name,
            _ => "OTHER",
        }
    }

    /// The byte of the binary header; that of `OTHER` for what does not fit one.
    pub(crate) fn wire_byte(self) -> u8 {
        u8::try_from(self.0).unwrap_or(7)
    }
}

impl Default for LanguageCode {
    /// What a header without a language means: Java.
    fn default() -> Self {
        Self::JAVA
    }
}

impl Serialize for LanguageCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.wire_name())
    }
}

impl<'de> Deserialize<'de> for LanguageCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrNumber;
        impl Visitor<'_> for NameOrNumber {
            type Value = LanguageCode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name or number of a language")
            }

            fn visit_str<E>(self, name: &str) -> Result<LanguageCode, E> {
                Ok(LanguageCode::from_name(name))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<LanguageCode, E> {
                i32::try_from(number)
                    .map(LanguageCode)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<LanguageCode, E> {
                i32::try_from(number).map(LanguageCode).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
            }

            fn visit_unit<E>(self) -> Result<LanguageCode, E> {
                Ok(LanguageCode::UNKNOWN)
            }
        }
        deserializer.deserialize_any(NameOrNumber).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_in_either_case_and_numbers_and_never_fails_on_a_new_one() {
        let read = |json: &str| serde_json::from_str::<LanguageCode>(json).unwrap();
        assert_eq!(read("\"RUST\""), LanguageCode::RUST);
        assert_eq!(read("\"rust\""), LanguageCode::RUST);
        assert_eq!(read("12"), LanguageCode::RUST);
        assert_eq!(read("99"), LanguageCode(99));
        assert_eq!(read("\"KLINGON\""), LanguageCode::UNKNOWN);
        assert_eq!(read("null"), LanguageCode::UNKNOWN);
        assert_eq!(serde_json::to_string(&LanguageCode::UNKNOWN).unwrap(), "\"OTHER\"");
        assert_eq!(LanguageCode(99).wire_byte(), 99);
        assert_eq!(LanguageCode::UNKNOWN.wire_byte(), 7);
    }
}
