//! The flag words of messages and of pull requests.
//!
//! Source: `MessageSysFlag`, `PullSysFlag`, `CompressionType` of Apache RocketMQ.

use super::BodyError;
use std::fmt;

/// The body is compressed; [`COMPRESSION_MASK`] says how.
pub const COMPRESSED: i32 = 0x1;
/// The topic filters by several tags of a message.
pub const MULTI_TAGS: i32 = 0x2;
/// The bits that hold the state of a transaction; none set: no transaction.
pub const TRANSACTION_MASK: i32 = 0xC;
/// A half message: its transaction is undecided.
pub const TRANSACTION_PREPARED: i32 = 0x4;
/// The transaction is committed.
pub const TRANSACTION_COMMIT: i32 = 0x8;
/// The transaction is rolled back.
pub const TRANSACTION_ROLLBACK: i32 = 0xC;
/// The born host takes 16 bytes in the stored form, not 4.
pub const BORN_HOST_V6: i32 = 0x10;
/// The store host takes 16 bytes in the stored form, not 4.
pub const STORE_HOST_V6: i32 = 0x20;
/// The body is a batch that consumers take apart; counts only together with [`INNER_BATCH`].
pub const NEED_UNWRAP: i32 = 0x40;
/// The message is a whole batch stored as one.
pub const INNER_BATCH: i32 = 0x80;
/// The bits that hold the type of compression.
pub const COMPRESSION_MASK: i32 = 0x700;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompressionType {
    /// An RFC 1950 stream.
    Zlib,
    /// The LZ4 frame format.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl CompressionType {
    /// The type that a message's flag word names. Producers before 4.9.4 name none, which means ZLIB.
    ///
    /// # Errors
    /// [`BodyError::UnknownCompression`] for a type that is not defined.
    pub fn from_sys_flag(sys_flag: i32) -> Result<Self, BodyError> {
        match (sys_flag & COMPRESSION_MASK) >> 8 {
            0 | 3 => Ok(Self::Zlib),
            1 => Ok(Self::Lz4),
            2 => Ok(Self::Zstd),
            code => Err(BodyError::UnknownCompression { code }),
        }
    }

    /// The bits of this type in a message's flag word, without [`COMPRESSED`].
    pub fn bits(self) -> i32 {
        let code = match self {
            Self::Lz4 => 1,
            Self::Zstd => 2,
            Self::Zlib => 3,
        };
        code << 8
    }
}

impl fmt::Display for CompressionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zlib => "zlib",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        })
    }
}

/// Whether consumers must take the body apart as a batch: both bits are needed.
pub fn is_inner_batch(sys_flag: i32) -> bool {
    let both = NEED_UNWRAP | INNER_BATCH;
    sys_flag & both == both
}

/// The flag word of a pull request.
pub mod pull {
    /// Store the commit offset that the request carries. Only for a master.
    pub const COMMIT_OFFSET: i32 = 0x1;
    /// The broker may hold the request until messages arrive.
    pub const SUSPEND: i32 = 0x2;
    /// The request carries its subscription, to be used instead of the one from the heartbeat.
    pub const SUBSCRIPTION: i32 = 0x4;
    /// Filtering by a class on the broker, a thing of the past.
    pub const CLASS_FILTER: i32 = 0x8;
    /// From a lite pull consumer.
    pub const LITE_PULL: i32 = 0x10;

    /// Whether all bits of `bit` are set.
    pub fn has(flag: i32, bit: i32) -> bool {
        flag & bit == bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_compression_of_every_code() {
        let of = |code: i32| CompressionType::from_sys_flag(COMPRESSED | code << 8);
        assert_eq!(of(0), Ok(CompressionType::Zlib));
        assert_eq!(of(1), Ok(CompressionType::Lz4));
        assert_eq!(of(2), Ok(CompressionType::Zstd));
        assert_eq!(of(3), Ok(CompressionType::Zlib));
        for code in 4..8 {
            assert_eq!(of(code), Err(BodyError::UnknownCompression { code }));
        }
        for kind in [CompressionType::Zlib, CompressionType::Lz4, CompressionType::Zstd] {
            assert_eq!(CompressionType::from_sys_flag(kind.bits()), Ok(kind));
        }
    }

    #[test]
    fn one_bit_alone_is_no_inner_batch() {
        assert!(is_inner_batch(0xC2));
        assert!(!is_inner_batch(NEED_UNWRAP));
        assert!(!is_inner_batch(INNER_BATCH));
    }
}
