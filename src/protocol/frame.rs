//! The length in front of every frame.

use crate::error::{Error, ErrorKind, Result};

/// Largest frame that RocketMQ's own peers accept, its four length bytes included.
pub const MAX_FRAME: usize = 16_777_216;

/// Bytes of the header word, which every frame has behind its length.
pub(crate) const HEADER_WORD: usize = 4;

/// How many bytes follow the length bytes `prefix`, when the whole frame may have `max` bytes.
///
/// # Errors
/// [`ErrorKind::Protocol`] when the length is below the four bytes of the header word or the frame would be over `max`.
/// Both mean that the stream is not, or no longer, the protocol: the connection must be closed.
pub fn frame_length(prefix: [u8; 4], max: usize) -> Result<usize> {
    let total = u32::from_be_bytes(prefix);
    let length = usize::try_from(total).unwrap_or(usize::MAX);
    if length < HEADER_WORD {
        return Err(Error::new(ErrorKind::Protocol, format!("frame length {total} leaves no room for a header")));
    }
    if length > max.saturating_sub(4) {
        return Err(Error::new(
            ErrorKind::Protocol,
            format!("frame length {total} is over the limit of {max} bytes; the peer may not speak this protocol"),
        ));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_lengths_from_the_header_word_up_to_the_limit_and_no_others() {
        let length = |total: u32| frame_length(total.to_be_bytes(), MAX_FRAME);
        assert_eq!(length(4).unwrap(), 4);
        assert_eq!(length(16_777_212).unwrap(), 16_777_212);
        for bad in [0, 3, 16_777_213, 0x1600_0000, 0x8000_0000, u32::MAX] {
            assert_eq!(length(bad).unwrap_err().kind(), ErrorKind::Protocol, "{bad}");
        }
        assert!(frame_length(8u32.to_be_bytes(), 0).is_err());
    }
}
