//! Compressed bodies: ZLIB, which every Java producer writes for bodies of 4 KiB and more.
//!
//! A body is inflated in steps under a limit, so that a few hostile kilobytes cannot fill the memory.

use super::sys_flag::CompressionType;
use crate::error::Result;
use bytes::Bytes;
use flate2::{Compression, Decompress, FlushDecompress, Status, write::ZlibEncoder};
use std::error::Error as StdError;
use std::fmt;
use std::io::Write;

/// Why the body of a message is handed on as it is stored. The message itself is sound.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// It inflates to more than the limit.
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The compressed stream is broken or cut short.
    Broken,
    /// The message names a type of compression that is not defined.
    UnknownCompression {
        /// The number of the type.
        code: i32,
    },
    /// The type of compression is one that this build cannot read.
    NotBuiltIn(CompressionType),
    /// The message is a batch stored as one, and its body cannot be taken apart.
    BatchNotSplit,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit } => write!(f, "the body inflates to more than the limit of {limit} bytes"),
            Self::Broken => f.write_str("the compressed body is broken or cut short"),
            Self::UnknownCompression { code } => write!(f, "the body is compressed with the unknown type {code}"),
            Self::NotBuiltIn(kind) => {
                write!(f, "the body is compressed with {kind}; this needs the feature \"{kind}\"")
            }
            Self::BatchNotSplit => f.write_str("the body is a batch that cannot be taken apart"),
        }
    }
}

impl StdError for BodyError {}

/// Inflates the body of a message whose flag word is `sys_flag`, to at most `limit` bytes.
///
/// # Errors
/// A [`BodyError`] if the body is broken, too large, or compressed in a way this build cannot read.
pub fn inflate(data: &[u8], sys_flag: i32, limit: usize) -> Result<Bytes, BodyError> {
    Inflater::default().inflate(data, sys_flag, limit)
}

/// Compresses a body with ZLIB at a level from 0 to 9; Java's default is 5.
///
/// # Errors
/// None in practice: it writes to memory.
pub fn deflate(data: &[u8], level: u32) -> Result<Bytes> {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(data.len() / 2 + 64), Compression::new(level.min(9)));
    encoder.write_all(data)?;
    Ok(encoder.finish()?.into())
}

/// Inflates many bodies one after the other with one working state (some 40 KiB), made when first needed.
#[derive(Default)]
pub(crate) struct Inflater {
    state: Option<Decompress>,
}

impl Inflater {
    pub(crate) fn inflate(&mut self, data: &[u8], sys_flag: i32, limit: usize) -> Result<Bytes, BodyError> {
        match CompressionType::from_sys_flag(sys_flag)? {
            CompressionType::Zlib => self.inflate_zlib(data, limit),
            kind => Err(BodyError::NotBuiltIn(kind)),
        }
    }

    fn inflate_zlib(&mut self, data: &[u8], limit: usize) -> Result<Bytes, BodyError> {
        let state = self.state.get_or_insert_with(|| Decompress::new(true));
        state.reset(true);
        // One byte more than allowed tells a body that just fits from one that does not.
        let most = limit.saturating_add(1);
        let mut out = Vec::with_capacity(data.len().saturating_mul(4).clamp(256, 64 * 1024).min(most));
        loop {
            let done = usize::try_from(state.total_in()).unwrap_or(data.len()).min(data.len());
            let before = (done, out.len());
            let status = state.decompress_vec(&data[done..], &mut out, FlushDecompress::None);
            if out.len() > limit {
                return Err(BodyError::TooLarge { limit });
            }
            match status {
                // What follows the end of the stream is ignored, as Java does.
                Ok(Status::StreamEnd) => break,
                Ok(Status::Ok | Status::BufError) if out.len() == out.capacity() => {
                    let more = out.capacity().min(most - out.len());
                    out.reserve_exact(more);
                }
                Ok(_) if state.total_in() == before.0 as u64 && out.len() == before.1 => {
                    return Err(BodyError::Broken);
                }
                Ok(_) => {}
                Err(_) => return Err(BodyError::Broken),
            }
        }
        out.shrink_to_fit();
        Ok(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::sys_flag::COMPRESSED;
    use crate::message::vectors::{LZ4, ZLIB, ZSTD, unhex};

    const TEXT: &[u8] = b"Hello RocketMQ Hello RocketMQ";

    fn inflate_zlib(data: &[u8], limit: usize) -> Result<Bytes, BodyError> {
        inflate(data, COMPRESSED | CompressionType::Zlib.bits(), limit)
    }

    #[test]
    fn inflates_what_java_compressed() {
        assert_eq!(inflate(&unhex(ZLIB), COMPRESSED, 1000).unwrap(), TEXT);
        assert_eq!(inflate_zlib(&unhex(ZLIB), 1000).unwrap(), TEXT);
    }

    #[test]
    fn says_which_compression_this_build_lacks() {
        for (hex, kind) in [(LZ4, CompressionType::Lz4), (ZSTD, CompressionType::Zstd)] {
            let error = inflate(&unhex(hex), COMPRESSED | kind.bits(), 1000).unwrap_err();
            assert_eq!(error, BodyError::NotBuiltIn(kind));
            assert!(error.to_string().contains(&format!("feature \"{kind}\"")), "{error}");
        }
        assert_eq!(inflate(&[], 0x701, 1000), Err(BodyError::UnknownCompression { code: 7 }));
    }

    #[test]
    fn the_limit_is_exact() {
        for length in [0, 1, 255, 256, 257, 65_536, 1_000_000] {
            let body: Vec<u8> = (0..length).map(|at: u32| (at % 251) as u8).collect();
            let small = deflate(&body, 5).unwrap();
            assert_eq!(inflate_zlib(&small, body.len()).unwrap(), body);
            if let Some(limit) = body.len().checked_sub(1) {
                assert_eq!(inflate_zlib(&small, limit), Err(BodyError::TooLarge { limit }), "{length} bytes");
            }
        }
    }

    #[test]
    fn refuses_a_stream_that_is_cut_or_changed() {
        let body: Vec<u8> = (0..3000u32).map(|at| ((at * at) >> 5) as u8).collect();
        for level in 0..=9 {
            let whole = deflate(&body, level).unwrap();
            for cut in [0, 1, 2, 3, whole.len() / 2, whole.len() - 4, whole.len() - 1] {
                assert_eq!(inflate_zlib(&whole[..cut], 1 << 20), Err(BodyError::Broken), "cut at {cut}");
            }
            let mut changed = whole.to_vec();
            *changed.last_mut().unwrap() ^= 1;
            assert_eq!(inflate_zlib(&changed, 1 << 20), Err(BodyError::Broken), "the checksum is looked at");
        }
    }

    #[test]
    fn ignores_what_follows_the_stream() {
        let mut data = unhex(ZLIB);
        data.extend_from_slice(b"and more");
        assert_eq!(inflate_zlib(&data, 1000).unwrap(), TEXT);
    }

    #[test]
    fn one_state_serves_many_bodies_also_after_a_bad_one() {
        let mut inflater = Inflater::default();
        let good = unhex(ZLIB);
        for data in [&good[..], &good[..10], &b"nonsense"[..], &good[..]] {
            let expected = if data.len() == good.len() { Ok(Bytes::from_static(TEXT)) } else { Err(BodyError::Broken) };
            assert_eq!(inflater.inflate(data, COMPRESSED, 1000), expected);
        }
    }
}
