//! Held against assigned: what to give up, what to take. Pure.

use crate::message::MessageQueue;
use std::collections::BTreeSet;

/// What a round changes for one topic.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Assigned and not held.
    pub add: Vec<MessageQueue>,
    /// Held and not assigned any more.
    pub drop: Vec<MessageQueue>,
}

impl Diff {
    pub(crate) fn is_empty(&self) -> bool {
        self.add.is_empty() && self.drop.is_empty()
    }
}

/// Compares the queues held with those assigned; neither order nor repetition matters.
pub(crate) fn diff<'a>(
    held: impl IntoIterator<Item = &'a MessageQueue>,
    assigned: impl IntoIterator<Item = &'a MessageQueue>,
) -> Diff {
    let held: BTreeSet<_> = held.into_iter().collect();
    let assigned: BTreeSet<_> = assigned.into_iter().collect();
    Diff {
        add: assigned.difference(&held).map(|queue| (*queue).clone()).collect(),
        drop: held.difference(&assigned).map(|queue| (*queue).clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(ids: &[i32]) -> Vec<MessageQueue> {
        ids.iter().map(|id| MessageQueue::new("t", "b", *id)).collect()
    }

    #[test]
    fn gives_up_what_is_not_assigned_and_takes_what_is_not_held() {
        let result = diff(&queues(&[0, 1, 2]), &queues(&[3, 2, 1, 2]));
        assert_eq!(result, Diff { add: queues(&[3]), drop: queues(&[0]) });
        assert!(diff(&queues(&[4, 5]), &queues(&[5, 4])).is_empty());
    }
}
