//! The byte stream of one connection as frames, over any `Read` and `Write`. No socket, no clock, no meaning.
//!
//! Reading: bytes come into a scratch buffer that all connections of a reactor share. A frame that lies in it whole is
//! copied out at its exact size. One that does not gets its own allocation of exactly its size as soon as its length is
//! known, and the rest of it is read straight into that; the same system call goes on into the scratch buffer, so that
//! many small frames behind it cost no call of their own. Either way the allocation becomes the frame's `Bytes`.
//!
//! The allocation is zeroed before it is read into. `Read::read_to_end` into spare capacity would zero it as well (only
//! the standard library's own sockets can do without) and read in steps of 8 KiB and up.
//!
//! Writing: frames wait in a queue as head and body, which are never joined: one vectored write takes many of them.

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::frame::frame_length;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};

/// Size of the scratch buffer: a pull answer of the usual 32 messages fits, and it stays within the second-level cache.
pub(crate) const SCRATCH: usize = 64 << 10;

/// Slices of one vectored write; Linux takes 1,024, but the array lives on the stack and 64 frames hide the call's cost.
const SLICES: usize = 128;

/// A frame to be written: all up to the body, and the body.
pub(crate) struct Frame {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Bytes,
}

impl Frame {
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

/// Framing state of one connection.
pub(crate) struct Wire {
    max_frame: usize,
    input: Input,
    output: VecDeque<Frame>,
    /// Bytes of the first frame in `output` that are written already.
    front_written: usize,
}

enum Input {
    /// Between frames, or inside the four length bytes.
    Prefix { bytes: [u8; 4], have: usize },
    /// Inside a frame that has its own allocation; `have` bytes of it are there.
    Frame { buffer: Vec<u8>, have: usize },
}

/// How a [`Wire::receive`] ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// There is nothing more to read now.
    Drained,
    /// The budget is used up; there may be more.
    More,
    /// The peer has closed its side.
    Closed,
}

impl Wire {
    pub(crate) fn new(max_frame: usize) -> Self {
        Self { max_frame, input: Input::between(), output: VecDeque::new(), front_written: 0 }
    }

    /// Reads what there is, at most about `budget` bytes, and appends whole frames (without their length bytes) to
    /// `inbox`. With `until_blocked` it goes on until the source says so; else a short read ends it, too, which saves a
    /// system call where the source reports readiness anew after it.
    ///
    /// Frames that came before an error are in `inbox`.
    pub(crate) fn receive(
        &mut self,
        io: &mut impl Read,
        scratch: &mut [u8],
        inbox: &mut Vec<Bytes>,
        budget: usize,
        until_blocked: bool,
    ) -> Result<Received> {
        let mut total = 0;
        while total < budget {
            let (read, room) = match self.read_once(io, scratch) {
                Ok(done) => done,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Received::Drained),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(Error::new(ErrorKind::Closed, format!("the connection broke while reading: {error}"))
                        .with_source(error));
                }
            };
            if read == 0 {
                return Ok(Received::Closed);
            }
            total += read;
            let in_scratch = self.take_direct(read, inbox);
            self.parse(&scratch[..in_scratch], inbox)?;
            if read < room && !until_blocked {
                return Ok(Received::Drained);
            }
        }
        Ok(Received::More)
    }

    /// One read into the frame under way, if any, and the scratch buffer behind it. Returns the bytes read and how many
    /// there was room for.
    fn read_once(&mut self, io: &mut impl Read, scratch: &mut [u8]) -> io::Result<(usize, usize)> {
        match &mut self.input {
            Input::Prefix { .. } => Ok((io.read(scratch)?, scratch.len())),
            Input::Frame { buffer, have } => {
                let rest = &mut buffer[*have..];
                let room = rest.len() + scratch.len();
                Ok((io.read_vectored(&mut [IoSliceMut::new(rest), IoSliceMut::new(scratch)])?, room))
            }
        }
    }

    /// Accounts `read` bytes to the frame under way; returns how many of them are in the scratch buffer.
    fn take_direct(&mut self, read: usize, inbox: &mut Vec<Bytes>) -> usize {
        let Input::Frame { buffer, have } = &mut self.input else { return read };
        let missing = buffer.len() - *have;
        if read < missing {
            *have += read;
            return 0;
        }
        inbox.push(Bytes::from(std::mem::take(buffer)));
        self.input = Input::between();
        read - missing
    }

    fn parse(&mut self, mut bytes: &[u8], inbox: &mut Vec<Bytes>) -> Result<()> {
        while !bytes.is_empty() {
            let Input::Prefix { bytes: prefix, have } = &mut self.input else {
                unreachable!("only the last bytes of a read can lie inside a frame")
            };
            let take = bytes.len().min(4 - *have);
            prefix[*have..*have + take].copy_from_slice(&bytes[..take]);
            *have += take;
            bytes = &bytes[take..];
            if *have < 4 {
                return Ok(());
            }
            // Checked before anything is allocated for it.
            let length = frame_length(*prefix, self.max_frame)?;
            if bytes.len() >= length {
                let (frame, rest) = bytes.split_at(length);
                inbox.push(Bytes::copy_from_slice(frame));
                bytes = rest;
                self.input = Input::between();
            } else {
                let mut buffer = vec![0; length];
                buffer[..bytes.len()].copy_from_slice(bytes);
                self.input = Input::Frame { buffer, have: bytes.len() };
                return Ok(());
            }
        }
        Ok(())
    }

    /// Puts a frame at the end of what is to be written.
    pub(crate) fn enqueue(&mut self, frame: Frame) {
        self.output.push_back(frame);
    }

    /// Whether all is written.
    pub(crate) fn is_drained(&self) -> bool {
        self.output.is_empty()
    }

    /// Writes as much as the sink takes. Returns the bytes written; [`is_drained`](Self::is_drained) tells whether the
    /// sink would block.
    pub(crate) fn flush(&mut self, io: &mut impl Write) -> io::Result<usize> {
        let mut total = 0;
        while !self.output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = 0;
            let mut skip = self.front_written;
            for part in self.output.iter().flat_map(|frame| [&frame.head[..], &frame.body[..]]) {
                if skip >= part.len() {
                    skip -= part.len();
                    continue;
                }
                if count == SLICES {
                    break;
                }
                slices[count] = IoSlice::new(&part[skip..]);
                skip = 0;
                count += 1;
            }
            match io.write_vectored(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    total += written;
                    self.advance(written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    fn advance(&mut self, written: usize) {
        self.front_written += written;
        while let Some(front) = self.output.front() {
            if self.front_written < front.len() {
                return;
            }
            self.front_written -= front.len();
            self.output.pop_front();
        }
        if self.output.capacity() > 1024 {
            self.output = VecDeque::new(); // a burst is over
        }
    }
}

impl Input {
    fn between() -> Self {
        Self::Prefix { bytes: [0; 4], have: 0 }
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
