//! The answer of a strategy: a description of the queues, cheap to make and to keep.

use crate::message::MessageQueue;
use std::ops::Range;
use std::sync::Arc;

/// The queues of one member, in order, as a description over the list they were chosen from. Making or cloning one
/// copies no queue.
///
/// ```
/// use rocketmq_sync::{MessageQueue, Share};
/// let queues: Vec<_> = (0..5).map(|id| MessageQueue::new("orders", "broker-a", id)).collect();
/// let share = Share::every(1, 2, queues.len());
/// assert_eq!(share.len(), 2);
/// assert!(share.iter(&queues).eq([&queues[1], &queues[3]]));
/// ```
#[derive(Debug, Clone)]
pub struct Share(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// `count` queues, the first one at `start`, each `step` after the one before.
    Every { start: usize, step: usize, count: usize },
    /// The indexes from `start` to before `end` of a list that other shares may use too, then one more.
    Listed { list: Arc<[u32]>, start: u32, end: u32, extra: Option<u32> },
    /// Queues that were not chosen from a list.
    Own(Arc<[MessageQueue]>),
}

impl Share {
    /// No queue.
    pub fn none() -> Self {
        Self::range(0..0)
    }

    /// Queues side by side.
    pub fn range(range: Range<usize>) -> Self {
        Self(Kind::Every { start: range.start, step: 1, count: range.len() })
    }

    /// The queue at `first` and every `step`th after it, out of `queues` in all. A `step` of 0 counts as 1.
    pub fn every(first: usize, step: usize, queues: usize) -> Self {
        let step = step.max(1);
        Self(Kind::Every { start: first, step, count: queues.saturating_sub(first).div_ceil(step) })
    }

    /// The queues at these indexes, in this order.
    pub fn indexes(indexes: impl Into<Arc<[u32]>>) -> Self {
        let list = indexes.into();
        let end = list.len() as u32;
        Self::listed(list, 0..end, None)
    }

    /// These queues, whatever the list is.
    pub fn own(queues: impl Into<Arc<[MessageQueue]>>) -> Self {
        Self(Kind::Own(queues.into()))
    }

    /// A part of a list of indexes, and one more index.
    pub(super) fn listed(list: Arc<[u32]>, part: Range<u32>, extra: Option<u32>) -> Self {
        Self(Kind::Listed { list, start: part.start, end: part.end, extra })
    }

    /// How many queues it names.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Every { count, .. } => *count,
            Kind::Listed { start, end, extra, .. } => (end - start) as usize + usize::from(extra.is_some()),
            Kind::Own(queues) => queues.len(),
        }
    }

    /// Whether it names none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index of its `nth` queue; `None` past the end, and always for queues that were not chosen by index.
    pub fn index(&self, nth: usize) -> Option<usize> {
        match &self.0 {
            Kind::Every { start, step, count } => (nth < *count).then(|| start + nth * step),
            Kind::Listed { list, start, end, extra } => {
                let part = &list[*start as usize..*end as usize];
                let index = part.get(nth).copied().or_else(|| extra.filter(|_| nth == part.len()));
                index.map(|index| index as usize)
            }
            Kind::Own(_) => None,
        }
    }

    /// The queues, out of the list that the strategy chose from. An index past the end of `queues` names nothing; see
    /// [`AllocateInput::ask`](super::AllocateInput::ask).
    pub fn iter<'a>(&'a self, queues: &'a [MessageQueue]) -> ShareIter<'a> {
        ShareIter { share: self, queues, next: 0 }
    }

    /// The queues, each a clone (two reference counts).
    pub fn to_vec(&self, queues: &[MessageQueue]) -> Vec<MessageQueue> {
        match &self.0 {
            Kind::Every { start, step: 1, count } => queues.iter().skip(*start).take(*count).cloned().collect(),
            Kind::Own(queues) => queues.to_vec(),
            _ => self.iter(queues).cloned().collect(),
        }
    }

    /// Whether its queues were not chosen by index.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.0, Kind::Own(_))
    }

    /// The greatest index that it names.
    pub(super) fn highest_index(&self) -> Option<usize> {
        match &self.0 {
            Kind::Every { count, .. } => self.index(count.checked_sub(1)?),
            _ => (0..self.len()).filter_map(|nth| self.index(nth)).max(),
        }
    }
}

/// The queues of a [`Share`], in order.
#[derive(Debug, Clone)]
pub struct ShareIter<'a> {
    share: &'a Share,
    queues: &'a [MessageQueue],
    next: usize,
}

impl<'a> Iterator for ShareIter<'a> {
    type Item = &'a MessageQueue;

    fn next(&mut self) -> Option<Self::Item> {
        let nth = self.next;
        self.next += 1;
        match &self.share.0 {
            Kind::Own(own) => own.get(nth),
            _ => self.queues.get(self.share.index(nth)?),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.share.len().saturating_sub(self.next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(count: i32) -> Vec<MessageQueue> {
        (0..count).map(|id| MessageQueue::new("T", "b", id)).collect()
    }

    fn ids(share: &Share, queues: &[MessageQueue]) -> Vec<i32> {
        let ids: Vec<i32> = share.iter(queues).map(MessageQueue::queue_id).collect();
        assert_eq!(ids, share.to_vec(queues).iter().map(MessageQueue::queue_id).collect::<Vec<_>>());
        assert_eq!(ids.len(), share.len());
        ids
    }

    #[test]
    fn names_the_queues_that_it_was_made_for() {
        let queues = queues(7);
        assert!(ids(&Share::none(), &queues).is_empty());
        assert_eq!(ids(&Share::range(2..5), &queues), [2, 3, 4]);
        assert_eq!(ids(&Share::every(1, 3, 7), &queues), [1, 4]);
        assert!(ids(&Share::every(8, 3, 7), &queues).is_empty());
        assert_eq!(ids(&Share::every(5, 0, 7), &queues), [5, 6]);
        assert_eq!(ids(&Share::indexes(vec![6, 0]), &queues), [6, 0]);
        let list: Arc<[u32]> = vec![4, 5, 6, 0].into();
        assert_eq!(ids(&Share::listed(list.clone(), 1..3, Some(2)), &queues), [5, 6, 2]);
        assert_eq!(ids(&Share::listed(list, 2..2, Some(2)), &queues), [2]);
        assert_eq!(ids(&Share::own(queues[3..5].to_vec()), &[]), [3, 4]);
    }

    #[test]
    fn knows_its_highest_index() {
        assert_eq!(Share::none().highest_index(), None);
        assert_eq!(Share::every(1, 3, 7).highest_index(), Some(4));
        assert_eq!(Share::indexes(vec![6, 9, 0]).highest_index(), Some(9));
        assert_eq!(Share::listed(vec![1, 2].into(), 0..1, Some(5)).highest_index(), Some(5));
        assert_eq!(Share::own(queues(2)).highest_index(), None);
    }

    #[test]
    fn an_index_past_the_end_names_nothing() {
        assert_eq!(Share::range(1..9).iter(&queues(3)).count(), 2);
        assert!(Share::range(5..9).to_vec(&queues(3)).is_empty());
    }
}
