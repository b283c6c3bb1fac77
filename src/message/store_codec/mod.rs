//! The form in which brokers store messages and send them to consumers, both ways.
//!
//! A body of a pull answer is records back to back. Every length is checked before it is used; a record that makes no
//! sense is passed over when its own size leads to a sound neighbour, and ends the work otherwise. [`Damage`] tells
//! the caller where, so that nothing is skipped unseen.
//!
//! Source: `MessageDecoder`, `MessageExtEncoder` of Apache RocketMQ.

mod decode;
#[cfg(test)]
mod decode_tests;
mod encode;
#[cfg(test)]
mod hostile_tests;

pub use decode::{Damage, DamageKind, DecodeOptions, Decoded, decode_all, decode_one, stored_properties};
pub use encode::{StoredFields, encode_stored};

/// The mark of a record whose topic has one byte of length.
pub const MAGIC_V1: u32 = 0xDAA3_20A7;
/// The mark of a record whose topic has two bytes of length, for topics of more than 127 bytes.
pub const MAGIC_V2: u32 = 0xDAA3_20AB;
/// The size of a record without body, topic and properties; none is smaller.
pub const MIN_RECORD: usize = 91;

/// The checksum that goes with a body: CRC-32 without its top bit.
pub fn body_crc(body: &[u8]) -> u32 {
    crc32fast::hash(body) & 0x7FFF_FFFF
}
