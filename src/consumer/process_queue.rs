//! `ProcessQueue`: what was pulled from one queue and is not finished yet.
//!
//! The offset to store is derived from it and kept nowhere else: the lowest offset not finished, or the end of what was
//! pulled when nothing is left. So it can never pass a message that is neither handled nor stored elsewhere.
//! Differs from the Java class in shape, since one pull circulates a queue and offsets arrive in order: a deque with
//! done marks instead of an ordered map.

use crate::sync::{Mutex, Rank};
use std::collections::VecDeque;

pub(crate) struct ProcessQueue {
    contents: Mutex<Contents>,
}

struct Contents {
    /// Ascending by offset. The first one is never done.
    entries: VecDeque<Entry>,
    unfinished: usize,
    bytes: u64,
    /// Every offset below this was pulled: it is in `entries`, finished, or was filtered away.
    pulled_to: i64,
    /// The pull ticket stands still here until there is room; whoever makes room gets to submit it.
    parked: bool,
    /// The ownership is over: nothing is taken in any more.
    is_over: bool,
}

struct Entry {
    offset: i64,
    /// The size that was counted, whatever happens to the message later (field report 42).
    size: u32,
    done: bool,
}

/// How much of a queue may be cached. Source of names and defaults: `DefaultMQPushConsumer` (02-consumer 1.5).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) messages: usize,
    pub(crate) bytes: u64,
    pub(crate) span: i64,
}

/// The limits of a queue, and those of a topic that its queues share. Source: `messageQueueChanged` (02-consumer 5.9);
/// Java divides by the number of all queues, of other topics too (T10).
#[derive(Debug, Clone, Copy)]
pub(crate) struct LimitPlan {
    pub(crate) queue: Limits,
    pub(crate) topic_messages: Option<usize>,
    pub(crate) topic_bytes: Option<u64>,
}

impl Limits {
    pub(crate) const NONE: Self = Self { messages: usize::MAX, bytes: u64::MAX, span: i64::MAX };
}

impl LimitPlan {
    /// Without limits of topics.
    pub(crate) fn of_queues(queue: Limits) -> Self {
        Self { queue, topic_messages: None, topic_bytes: None }
    }

    /// What one queue may cache while `held` of its topic are held. A limit of the topic takes the queue's place.
    pub(crate) fn share(&self, held: usize) -> Limits {
        let held = held.max(1);
        Limits {
            messages: self.topic_messages.map_or(self.queue.messages, |messages| (messages / held).max(1)),
            bytes: self.topic_bytes.map_or(self.queue.bytes, |bytes| (bytes / held as u64).max(1)),
            span: self.queue.span,
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.topic_messages.is_some() || self.topic_bytes.is_some()
    }
}

/// Why a queue is not pulled for the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    Messages,
    Bytes,
    Span,
}

/// What is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cached {
    pub(crate) messages: usize,
    pub(crate) bytes: u64,
    pub(crate) min_offset: Option<i64>,
    pub(crate) max_offset: Option<i64>,
    /// Finished, but behind one that is not: they come again if the ownership ends now.
    pub(crate) finished_ahead: usize,
    pub(crate) is_parked: bool,
}

/// What finishing messages came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finished {
    /// Messages that were counted and now are not.
    pub(crate) messages: usize,
    pub(crate) bytes: u64,
    /// The parked ticket is the caller's to submit.
    pub(crate) unparked: bool,
}

impl ProcessQueue {
    pub(crate) fn new(start: i64) -> Self {
        let contents = Contents {
            entries: VecDeque::new(),
            unfinished: 0,
            bytes: 0,
            pulled_to: start,
            parked: false,
            is_over: false,
        };
        Self { contents: Mutex::new(Rank::ProcessQueue, contents) }
    }

    /// Enters messages, as (offset, size), before they are handed to anybody. Those at or below what is known already
    /// are refused, and all once the ownership is over: the result tells for each whether it was taken. `pulled_to` is
    /// where the next pull begins.
    pub(crate) fn put(&self, messages: impl Iterator<Item = (i64, usize)>, pulled_to: i64) -> Vec<bool> {
        let mut contents = self.contents.lock();
        if contents.is_over {
            // Nobody would finish them, nor give back what they count for.
            return messages.map(|_| false).collect();
        }
        let mut known_to = contents.pulled_to;
        let taken = messages
            .map(|(offset, size)| {
                if offset < known_to {
                    return false;
                }
                let size = u32::try_from(size).unwrap_or(u32::MAX);
                contents.entries.push_back(Entry { offset, size, done: false });
                contents.unfinished += 1;
                contents.bytes += u64::from(size);
                known_to = offset.saturating_add(1);
                true
            })
            .collect();
        contents.pulled_to = known_to.max(pulled_to);
        taken
    }

    /// The pull went on although nothing was cached: everything in between was filtered away.
    pub(crate) fn advance(&self, pulled_to: i64) {
        let mut contents = self.contents.lock();
        contents.pulled_to = contents.pulled_to.max(pulled_to);
    }

    /// Marks messages finished. Unknown ones, or ones finished before, change nothing.
    pub(crate) fn finish(&self, offsets: &[i64], limits: &Limits) -> Finished {
        let mut contents = self.contents.lock();
        let mut finished = Finished { messages: 0, bytes: 0, unparked: false };
        for offset in offsets {
            let Ok(at) = contents.entries.binary_search_by_key(offset, |entry| entry.offset) else { continue };
            let entry = &mut contents.entries[at];
            if !std::mem::replace(&mut entry.done, true) {
                finished.messages += 1;
                finished.bytes += u64::from(entry.size);
            }
        }
        contents.unfinished -= finished.messages;
        contents.bytes -= finished.bytes;
        while contents.entries.front().is_some_and(|entry| entry.done) {
            contents.entries.pop_front();
        }
        if contents.parked && contents.full(limits).is_none() {
            contents.parked = false;
            finished.unparked = true;
        }
        finished
    }

    /// Whether the queue may be pulled now. If not, the caller's ticket is parked here, in the same step, so that the
    /// finish that makes room cannot miss it.
    pub(crate) fn admit(&self, limits: &Limits) -> Result<(), Full> {
        let mut contents = self.contents.lock();
        match contents.full(limits) {
            Some(full) => {
                contents.parked = true;
                Err(full)
            }
            None => Ok(()),
        }
    }

    /// Parks the caller's ticket while what it waits for `stands`; asked in the same step, so that whoever ends it, and
    /// then calls [`unpark`](Self::unpark), cannot miss the ticket.
    pub(crate) fn park_while(&self, stands: impl FnOnce() -> bool) -> bool {
        let mut contents = self.contents.lock();
        let parks = stands();
        contents.parked |= parks;
        parks
    }

    /// Takes a parked ticket out; it is the caller's to submit.
    pub(crate) fn unpark(&self) -> bool {
        std::mem::take(&mut self.contents.lock().parked)
    }

    /// The lowest offset that is not finished: where a next owner must start.
    pub(crate) fn commit_offset(&self) -> i64 {
        let contents = self.contents.lock();
        contents.entries.front().map_or(contents.pulled_to, |entry| entry.offset)
    }

    /// The ownership is over: what is unfinished belongs to the next owner. The offset to store stays as it is, and
    /// late results find nothing. Returns the bytes that were still counted.
    pub(crate) fn abandon(&self) -> u64 {
        let mut contents = self.contents.lock();
        if let Some(first) = contents.entries.front() {
            contents.pulled_to = first.offset;
        }
        contents.is_over = true;
        contents.entries.clear();
        contents.unfinished = 0;
        contents.parked = false;
        std::mem::take(&mut contents.bytes)
    }

    /// How many messages below `offset` are not finished.
    pub(crate) fn unfinished_below(&self, offset: i64) -> usize {
        let contents = self.contents.lock();
        contents.entries.iter().take_while(|entry| entry.offset < offset).filter(|entry| !entry.done).count()
    }

    pub(crate) fn cached(&self) -> Cached {
        let contents = self.contents.lock();
        Cached {
            messages: contents.unfinished,
            bytes: contents.bytes,
            min_offset: contents.entries.front().map(|entry| entry.offset),
            max_offset: contents.entries.back().map(|entry| entry.offset),
            finished_ahead: contents.entries.len() - contents.unfinished,
            is_parked: contents.parked,
        }
    }
}

impl Contents {
    fn full(&self, limits: &Limits) -> Option<Full> {
        let span = match (self.entries.front(), self.entries.back()) {
            (Some(first), Some(last)) => last.offset - first.offset,
            _ => 0,
        };
        limits.exceeded(self.unfinished, self.bytes, span)
    }
}

impl Limits {
    /// Which one is exceeded, if any. Strictly above a limit is full, as in the Java client.
    pub(crate) fn exceeded(&self, messages: usize, bytes: u64, span: i64) -> Option<Full> {
        if messages > self.messages {
            Some(Full::Messages)
        } else if bytes > self.bytes {
            Some(Full::Bytes)
        } else if span > self.span {
            Some(Full::Span)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Limits = Limits { messages: 1000, bytes: 1 << 30, span: 2000 };

    fn put(queue: &ProcessQueue, offsets: std::ops::Range<i64>) {
        let end = offsets.end;
        assert!(queue.put(offsets.map(|offset| (offset, 10)), end).into_iter().all(|taken| taken));
    }

    #[test]
    fn the_offset_to_store_is_the_lowest_unfinished() {
        let queue = ProcessQueue::new(5);
        assert_eq!(queue.commit_offset(), 5);
        put(&queue, 5..10);
        queue.finish(&[6, 9], &WIDE);
        assert_eq!(queue.commit_offset(), 5);
        queue.finish(&[5], &WIDE);
        assert_eq!(queue.commit_offset(), 7);
        queue.finish(&[7, 8], &WIDE);
        assert_eq!(queue.commit_offset(), 10);
        assert_eq!(queue.cached(), Cached::default());
    }

    #[test]
    fn filtered_messages_move_it_only_when_nothing_is_left_before_them() {
        let queue = ProcessQueue::new(0);
        put(&queue, 0..1);
        queue.advance(50);
        assert_eq!(queue.commit_offset(), 0);
        queue.finish(&[0], &WIDE);
        assert_eq!(queue.commit_offset(), 50);
        queue.advance(20);
        assert_eq!(queue.commit_offset(), 50);
    }

    #[test]
    fn a_message_is_taken_and_finished_once() {
        let queue = ProcessQueue::new(3);
        assert_eq!(queue.put([(2, 10), (3, 10), (4, 10)].into_iter(), 5), [false, true, true]);
        assert_eq!(queue.put([(4, 10), (5, 10)].into_iter(), 6), [false, true]);
        assert_eq!(queue.finish(&[4, 4, 99], &WIDE).messages, 1);
        assert_eq!(queue.finish(&[4], &WIDE).messages, 0);
        assert_eq!(queue.cached().messages, 2);
        assert_eq!(queue.cached().bytes, 20);
    }

    #[test]
    fn a_parked_ticket_is_given_to_the_finish_that_makes_room() {
        let limits = Limits { messages: 2, ..WIDE };
        let queue = ProcessQueue::new(0);
        put(&queue, 0..4);
        assert_eq!(queue.admit(&limits), Err(Full::Messages));
        assert!(!queue.finish(&[0], &limits).unparked);
        assert!(queue.finish(&[1], &limits).unparked);
        assert!(!queue.finish(&[2], &limits).unparked);
        assert_eq!(queue.admit(&limits), Ok(()));
    }

    #[test]
    fn a_ticket_parked_for_another_reason_is_given_out_once() {
        let queue = ProcessQueue::new(0);
        assert!(!queue.park_while(|| false) && !queue.unpark());
        assert!(queue.park_while(|| true));
        assert!(queue.unpark() && !queue.unpark());
        // A finish gives it out too, whatever it was parked for: the pull path decides again.
        put(&queue, 0..1);
        assert!(queue.park_while(|| true));
        assert!(queue.finish(&[0], &WIDE).unparked && !queue.unpark());
    }

    #[test]
    fn the_limits_of_a_topic_are_shared_by_the_queues_held_of_it() {
        let plan = LimitPlan { queue: WIDE, topic_messages: Some(10), topic_bytes: None };
        let share = |held| plan.share(held);
        assert_eq!([0, 1, 3, 10, 99].map(|held| share(held).messages), [10, 10, 3, 1, 1]);
        assert_eq!((share(3).bytes, share(3).span), (WIDE.bytes, WIDE.span));
        assert_eq!(LimitPlan { topic_bytes: Some(90), ..plan }.share(4).bytes, 22);
    }

    #[test]
    fn an_abandoned_queue_keeps_its_offset_and_ignores_late_results() {
        let queue = ProcessQueue::new(0);
        put(&queue, 0..5);
        queue.finish(&[0, 2], &WIDE);
        assert_eq!(queue.abandon(), 30);
        assert_eq!(queue.finish(&[1, 3], &WIDE).bytes, 0);
        assert_eq!(queue.commit_offset(), 1);
        assert_eq!(queue.put([(5, 10), (6, 10)].into_iter(), 7), [false, false], "an answer that came late");
        assert_eq!((queue.commit_offset(), queue.cached()), (1, Cached::default()));
    }

    #[test]
    fn the_span_counts_from_the_first_unfinished() {
        let limits = Limits { span: 100, ..WIDE };
        let queue = ProcessQueue::new(0);
        assert_eq!(queue.put([(0, 1), (101, 1)].into_iter(), 102), [true, true]);
        assert_eq!(queue.admit(&limits), Err(Full::Span));
        assert!(queue.finish(&[0], &limits).unparked);
    }
}
