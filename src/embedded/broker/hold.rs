//! Pulls that wait for a message.
//!
//! Kept from a real broker (`PullRequestHoldService`): a pull waits under its queue, an arrival that its filter may
//! match wakes it, and so does the end of its time. Stronger: time-outs come when they were asked for, where upstream
//! looks every 5 s; a pull that finds nothing is put here under the same lock, so no arrival falls in between.
//! Different: an arrival that the filter does not match wakes nobody, so a filtered consumer's offset moves past such
//! messages when its hold ends, not within 5 s. Bounded: beyond `most` waiting pulls,
//! or too many bytes of them, a new one is not held; when one arrival would wake too many, or their conditions would
//! take too long, the rest ends at once as if its time were over, a part at a time.

use super::filter::Filter;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// A waiting pull, with what its owner needs to run it again.
#[derive(Debug)]
pub(crate) struct Held<T> {
    pub(crate) slot: u32,
    pub(crate) connection: u64,
    /// A message at this offset or beyond wakes it.
    pub(crate) offset: i64,
    pub(crate) until: Instant,
    pub(crate) filter: Filter,
    /// Bytes that it takes, about.
    pub(crate) weight: usize,
    pub(crate) pull: T,
}

/// Most bytes of all pulls that wait.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// All pulls that wait on one broker.
#[derive(Debug)]
pub(crate) struct HoldTable<T> {
    held: HashMap<u64, Held<T>>,
    by_slot: HashMap<u32, Vec<u64>>,
    by_time: BTreeSet<(Instant, u64)>,
    next_id: u64,
    most: usize,
    bytes: usize,
}

impl<T> HoldTable<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { held: HashMap::new(), by_slot: HashMap::new(), by_time: BTreeSet::new(), next_id: 0, most, bytes: 0 }
    }

    /// Lets a pull wait, or gives it back when too many do already.
    pub(crate) fn hold(&mut self, held: Held<T>) -> Result<(), Held<T>> {
        if self.held.len() >= self.most || self.bytes + held.weight > MOST_BYTES {
            return Err(held);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.by_slot.entry(held.slot).or_default().push(id);
        self.by_time.insert((held.until, id));
        self.bytes += held.weight;
        self.held.insert(id, held);
        Ok(())
    }

    /// Takes the pulls of a queue that a message may answer, in the order in which they came. `max_offset` is the
    /// queue's next offset; `passes` says whether a filter lets the message through. A pull of which it says nothing
    /// becomes due now.
    pub(crate) fn take_arrived(
        &mut self,
        slot: u32,
        max_offset: i64,
        now: Instant,
        mut passes: impl FnMut(&Filter) -> Option<bool>,
    ) -> Vec<Held<T>> {
        let mut due = Vec::new();
        let taken = self.take_of_slot(slot, |id, held| {
            // Whose time is over gets its answer anyway.
            if max_offset <= held.offset || held.until <= now {
                return false;
            }
            passes(&held.filter).unwrap_or_else(|| {
                due.push(id);
                false
            })
        });
        for id in due {
            if let Some(held) = self.held.get_mut(&id) {
                self.by_time.remove(&(held.until, id));
                held.until = now;
                self.by_time.insert((now, id));
            }
        }
        taken
    }

    /// Takes all pulls of a queue, for example because its topic is gone.
    pub(crate) fn take_slot(&mut self, slot: u32) -> Vec<Held<T>> {
        self.take_of_slot(slot, |_, _| true)
    }

    /// Takes one pull whose time is over.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Held<T>> {
        let (until, id) = *self.by_time.first()?;
        (until <= now).then(|| self.remove(id)).flatten()
    }

    /// Forgets the pulls of a connection that is gone.
    pub(crate) fn forget_connection(&mut self, connection: u64) {
        let gone: Vec<u64> =
            self.held.iter().filter(|(_, held)| held.connection == connection).map(|(id, _)| *id).collect();
        for id in gone {
            self.remove(id);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.by_slot.clear();
        self.by_time.clear();
        self.bytes = 0;
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(until, _)| *until)
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    fn take_of_slot(&mut self, slot: u32, mut wanted: impl FnMut(u64, &Held<T>) -> bool) -> Vec<Held<T>> {
        let Some(ids) = self.by_slot.get_mut(&slot) else { return Vec::new() };
        let mut taken = Vec::new();
        ids.retain(|id| {
            if !self.held.get(id).is_some_and(|held| wanted(*id, held)) {
                return true;
            }
            if let Some(held) = self.held.remove(id) {
                self.by_time.remove(&(held.until, *id));
                self.bytes -= held.weight;
                taken.push(held);
            }
            false
        });
        if ids.is_empty() {
            self.by_slot.remove(&slot);
        }
        taken
    }

    fn remove(&mut self, id: u64) -> Option<Held<T>> {
        let held = self.held.remove(&id)?;
        self.bytes -= held.weight;
        self.by_time.remove(&(held.until, id));
        if let Some(ids) = self.by_slot.get_mut(&held.slot) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_slot.remove(&held.slot);
            }
        }
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn pull(slot: u32, offset: i64, until: Instant, filter: Filter, name: &'static str) -> Held<&'static str> {
        Held { slot, connection: u64::from(slot), offset, until, filter, weight: 100, pull: name }
    }

    fn names(taken: &[Held<&'static str>]) -> Vec<&'static str> {
        taken.iter().map(|held| held.pull).collect()
    }

    #[test]
    fn an_arrival_wakes_whom_it_may_answer() {
        let now = Instant::now();
        let end = now + Duration::from_secs(15);
        let mut table = HoldTable::new(10);
        for held in [
            pull(1, 5, end, Filter::All, "all"),
            pull(1, 5, end, Filter::Hashes(vec![7]), "other tag"),
            pull(1, 6, end, Filter::All, "further on"),
            pull(2, 5, end, Filter::All, "other queue"),
            pull(1, 5, end, Filter::Hashes(vec![7, 9]), "tag"),
        ] {
            table.hold(held).unwrap();
        }
        assert_eq!(names(&table.take_arrived(1, 6, now, |filter| Some(filter.passes_code(9)))), ["all", "tag"]);
        assert_eq!(table.len(), 3);
        assert_eq!(names(&table.take_slot(1)), ["other tag", "further on"]);
        assert!(table.take_slot(1).is_empty());
    }

    #[test]
    fn a_pull_that_there_was_no_time_for_is_due_and_so_many_bytes_do_not_wait() {
        let now = Instant::now();
        let end = now + Duration::from_secs(15);
        let mut table = HoldTable::new(10);
        table.hold(pull(1, 5, end, Filter::All, "first")).unwrap();
        table.hold(pull(1, 5, end, Filter::All, "second")).unwrap();
        table.hold(pull(1, 6, end, Filter::All, "further on")).unwrap();
        let mut asked = 0;
        let passes = |_: &Filter| {
            asked += 1;
            (asked == 1).then_some(true)
        };
        assert_eq!(names(&table.take_arrived(1, 6, now, passes)), ["first"]);
        assert!(table.take_arrived(1, 6, now, |_| Some(true)).is_empty());
        assert_eq!(table.take_due(now).unwrap().pull, "second");
        assert!(table.take_due(now).is_none());
        let large = |name| Held { weight: MOST_BYTES - 150, ..pull(2, 0, end, Filter::All, name) };
        table.hold(large("large")).unwrap();
        assert_eq!(table.hold(large("too large")).unwrap_err().pull, "too large");
        table.forget_connection(2);
        assert_eq!(table.bytes, 100);
        table.hold(large("now")).unwrap();
    }

    #[test]
    fn ends_each_at_its_own_time_and_frees_what_a_connection_held() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut table = HoldTable::new(3);
        table.hold(pull(1, 0, after(20), Filter::All, "late")).unwrap();
        table.hold(pull(1, 0, after(10), Filter::All, "early")).unwrap();
        table.hold(pull(2, 0, after(5), Filter::All, "gone")).unwrap();
        assert_eq!(table.hold(pull(2, 0, after(5), Filter::All, "over")).unwrap_err().pull, "over");
        table.forget_connection(2);
        assert_eq!(table.next_due(), Some(after(10)));
        assert!(table.take_due(after(9)).is_none());
        assert_eq!(table.take_due(after(10)).unwrap().pull, "early");
        assert!(table.take_due(after(10)).is_none());
        assert_eq!(names(&table.take_arrived(1, 1, start, |filter| Some(filter.passes_code(0)))), ["late"]);
        assert_eq!((table.len(), table.next_due()), (0, None));
    }
}
