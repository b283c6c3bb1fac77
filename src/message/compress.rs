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
