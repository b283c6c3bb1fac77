//! Pulls that wait for a message.
//!
//! Kept from a real broker (`PullRequestHoldService`): a pull waits under its queue, an arrival that its filter may
//! match wakes it, and so does the end of its time. Stronger: time-outs come when they were asked for, where upstream
//! looks every 5 s; a pull that finds nothing is put here under the same lock, so no arrival falls in between.
//! Different: an arrival that the filter does not match wakes nobody, so a filtered consumer's offset moves past such
//! messages when its hold ends, not within 5 s. Bounded: beyond `most` waiting pulls a new one is not held.

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
    pub(crate) pull: T,
}

/// All pulls that wait on one broker.
#[derive(Debug)]
pub(crate) struct HoldTable<T> {
    held: HashMap<u64, Held<T>>,
    by_slot: HashMap<u32, Vec<u64>>,
    by_time: BTreeSet<(Instant, u64)>,
    next_id: u64,
    most: usize,
}

impl<T> HoldTable<T> {
    pub(crate) fn new(most: usize) -> Self {
        Self { held: HashMap::new(), by_slot: HashMap::new(), by_time: BTreeSet::new(), next_id: 0, most }
    }

    /// Lets a pull wait, or gives it back when too many do already.
    pub(crate) fn hold(&mut self, held: Held<T>) -> Result<(), Held<T>> {
        if self.held.len() >= self.most {
            return Err(held);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.by_slot.entry(held.slot).or_default().push(id);
        self.by_time.insert((held.until, id));
        self.held.insert(id, held);
        Ok(())
    }

    /// Takes the pulls of a queue that a message may answer, in the order in which they came. `max_offset` is the
    /// queue's next offset; `passes` says whether a filter lets the message through.
    pub(crate) fn take_arrived(
        &mut self,
        slot: u32,
        max_offset: i64,
        passes: impl Fn(&Filter) -> bool,
    ) -> Vec<Held<T>> {
        self.take_of_slot(slot, |held| max_offset > held.offset && passes(&held.filter))
    }

    /// Takes all pulls of a queue, for example because its topic is gone.
    pub(crate) fn take_slot(&mut self, slot: u32) -> Vec<Held<T>> {
        self.take_of_slot(slot, |_| true)
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
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(until, _)| *until)
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    fn take_of_slot(&mut self, slot: u32, wanted: impl Fn(&Held<T>) -> bool) -> Vec<Held<T>> {
        let Some(ids) = self.by_slot.get_mut(&slot) else { return Vec::new() };
        let mut taken = Vec::new();
        ids.retain(|id| {
            if !self.held.get(id).is_some_and(&wanted) {
                return true;
            }
            if let Some(held) = self.held.remove(id) {
                self.by_time.remove(&(held.until, *id));
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
        Held { slot, connection: u64::from(slot), offset, until, filter, pull: name }
    }

    fn names(taken: &[Held<&'static str>]) -> Vec<&'static str> {
        taken.iter().map(|held| held.pull).collect()
    }

    #[test]
    fn an_arrival_wakes_whom_it_may_answer() {
        let end = Instant::now() + Duration::from_secs(15);
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
        assert_eq!(names(&table.take_arrived(1, 6, |filter| filter.passes_code(9))), ["all", "tag"]);
        assert_eq!(table.len(), 3);
        assert_eq!(names(&table.take_slot(1)), ["other tag", "further on"]);
        assert!(table.take_slot(1).is_empty());
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
        assert_eq!(names(&table.take_arrived(1, 1, |filter| filter.passes_code(0))), ["late"]);
        assert_eq!((table.len(), table.next_due()), (0, None));
    }
}
