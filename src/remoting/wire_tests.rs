use super::*;
use crate::protocol::frame::MAX_FRAME;

/// Gives its bytes in pieces of `step`, then blocks or ends.
struct Source<'a> {
    bytes: &'a [u8],
    step: usize,
    ends: bool,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && !self.ends {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let take = buffer.len().min(self.step).min(self.bytes.len());
        buffer[..take].copy_from_slice(&self.bytes[..take]);
        self.bytes = &self.bytes[take..];
        Ok(take)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut total = 0;
        for buffer in buffers.iter_mut() {
            let left = self.step - total;
            let room = buffer.len().min(left);
            if room == 0 || (total > 0 && self.bytes.is_empty()) {
                break;
            }
            total += self.read(&mut buffer[..room])?;
        }
        Ok(total)
    }
}

fn framed(frames: &[Vec<u8>]) -> Vec<u8> {
    frames.iter().flat_map(|frame| [&(frame.len() as u32).to_be_bytes()[..], frame].concat()).collect()
}

/// Bytes that differ at their ends and every few, so that nothing can be lost, doubled or swapped unseen.
fn pattern(length: usize) -> Vec<u8> {
    let mut bytes = vec![length as u8; length];
    for at in (0..length).step_by(if length > 10_000 { 1021 } else { 1 }) {
        bytes[at] = (at * 31 + length) as u8;
    }
    bytes
}

/// Reads all of `bytes`, in pieces of `step`; the scratch buffer has `scratch` bytes.
fn read_all(bytes: &[u8], step: usize, scratch: usize) -> (Vec<Bytes>, Result<Received>) {
    let mut wire = Wire::new(MAX_FRAME);
    let mut source = Source { bytes, step, ends: false };
    let (mut scratch, mut inbox) = (vec![0; scratch], Vec::new());
    let end = wire.receive(&mut source, &mut scratch, &mut inbox, usize::MAX, true);
    (inbox, end)
}

#[test]
fn frames_come_out_the_same_however_the_bytes_are_cut() {
    let frames: Vec<_> = [4, 5, 60, 61, 62, 63, 64, 65, 4, 200, 4, 1000, 7].into_iter().map(pattern).collect();
    let bytes = framed(&frames);
    for step in (1..70).chain([100, 128, 1000, usize::MAX]) {
        let (read, end) = read_all(&bytes, step, 64);
        assert_eq!(end.expect("no error"), Received::Drained, "step {step}");
        assert_eq!(read, frames, "step {step}");
    }
}

#[test]
fn frames_around_each_power_of_two_pass_byte_by_byte_and_in_one_piece() {
    for power in 2..=24 {
        for length in [(1usize << power) - 1, 1 << power, (1 << power) + 1] {
            if !(4..=MAX_FRAME - 4).contains(&length) {
                continue;
            }
            let frames = [pattern(length), pattern(4)];
            let bytes = framed(&frames);
            let steps: &[usize] = if power <= 14 { &[1, usize::MAX] } else { &[4099, usize::MAX] };
            for step in steps {
                let (read, end) = read_all(&bytes, *step, SCRATCH);
                assert_eq!(end.expect("no error"), Received::Drained, "{length} by {step}");
                assert!(read == frames, "{length} by {step}");
            }
        }
    }
}

#[test]
fn a_bad_length_is_an_error_after_the_good_frames_before_it() {
    for total in [0u32, 3, 16_777_213, 0x8000_0000, u32::MAX] {
        let mut bytes = framed(&[pattern(10)]);
        bytes.extend_from_slice(&total.to_be_bytes());
        bytes.extend_from_slice(&[0; 100]);
        let (read, end) = read_all(&bytes, 3, 64);
        assert_eq!(end.expect_err("a bad length").kind(), ErrorKind::Protocol, "{total}");
        assert_eq!(read, [pattern(10)], "{total}");
    }
}

#[test]
fn every_truncated_prefix_waits_or_ends_and_gives_no_frame() {
    let bytes = framed(&[pattern(300)]);
    for length in 0..bytes.len() {
        let mut wire = Wire::new(MAX_FRAME);
        let mut source = Source { bytes: &bytes[..length], step: 7, ends: true };
        let (mut scratch, mut inbox) = (vec![0; 64], Vec::new());
        let end = wire.receive(&mut source, &mut scratch, &mut inbox, usize::MAX, true);
        assert_eq!(end.expect("the end is no error here"), Received::Closed);
        assert!(inbox.is_empty());
    }
}

#[test]
fn reading_stops_at_its_budget_and_after_a_short_read() {
    let bytes = framed(&vec![pattern(60); 100]);
    let mut wire = Wire::new(MAX_FRAME);
    let mut source = Source { bytes: &bytes, step: 64, ends: false };
    let (mut scratch, mut inbox) = (vec![0; 64], Vec::new());
    let end = wire.receive(&mut source, &mut scratch, &mut inbox, 640, false).expect("no error");
    assert_eq!((end, inbox.len()), (Received::More, 10));
    source.step = 63;
    let end = wire.receive(&mut source, &mut scratch, &mut inbox, usize::MAX, false).expect("no error");
    assert_eq!((end, inbox.len()), (Received::Drained, 10), "a short read ends it, the frame is under way");
}

/// Takes at most `step` bytes a call, and blocks when `room` is used up.
struct Sink {
    taken: Vec<u8>,
    step: usize,
    room: usize,
    calls: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.calls += 1;
        let mut left = self.step.min(self.room);
        let before = self.taken.len();
        for slice in slices {
            let take = slice.len().min(left);
            self.taken.extend_from_slice(&slice[..take]);
            left -= take;
        }
        self.room -= self.taken.len() - before;
        Ok(self.taken.len() - before)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn frames_are_written_in_order_however_little_the_sink_takes() {
    let parts: Vec<(Vec<u8>, Vec<u8>)> =
        (0..300).map(|number| (pattern(8 + number % 5), pattern(if number % 3 == 0 { 0 } else { number }))).collect();
    let expected: Vec<u8> = parts.iter().flat_map(|(head, body)| [&head[..], body].concat()).collect();
    for (step, room) in [(1, 1), (7, 13), (100, 1000), (usize::MAX, usize::MAX)] {
        let mut wire = Wire::new(MAX_FRAME);
        for (head, body) in &parts {
            wire.enqueue(Frame { head: head.clone(), body: body.clone().into() });
        }
        let mut sink = Sink { taken: Vec::new(), step, room, calls: 0 };
        let mut written = 0;
        while !wire.is_drained() {
            sink.room = room;
            written += wire.flush(&mut sink).expect("no error");
        }
        assert_eq!((written, &sink.taken), (expected.len(), &expected), "step {step}");
        if step == usize::MAX {
            assert_eq!(sink.calls, 4, "500 parts in calls of 128");
        }
    }
}
