//! What a strategy decides on, and the checks that all of them share.

use super::{AllocateMessageQueueStrategy, Members, Share};
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a strategy decides on: the queues of a topic, the members of the group, and which of them is asking.
///
/// Both lists are in the order in which all members see them. They are shared and never change, so a strategy may keep
/// what it worked out for a list and find it again by the list's identity ([`Arc::ptr_eq`]).
#[derive(Debug, Clone, Copy)]
pub struct AllocateInput<'a> {
    group: &'a str,
    current: &'a str,
    queues: &'a Arc<[MessageQueue]>,
    members: &'a Arc<Members>,
}

impl<'a> AllocateInput<'a> {
    /// The share of `current` is wanted, of `queues` in order.
    pub fn new(group: &'a str, current: &'a str, queues: &'a Arc<[MessageQueue]>, members: &'a Arc<Members>) -> Self {
        Self { group, current, queues, members }
    }

    /// The consumer group.
    pub fn group(&self) -> &'a str {
        self.group
    }

    /// The client id whose share is wanted.
    #[doc(alias = "currentCID")]
    pub fn current(&self) -> &'a str {
        self.current
    }

    /// The queues, in order.
    #[doc(alias = "mqAll")]
    pub fn queues(&self) -> &'a Arc<[MessageQueue]> {
        self.queues
    }

    /// The members, in order.
    #[doc(alias = "cidAll")]
    pub fn members(&self) -> &'a Arc<Members> {
        self.members
    }

    /// The place of [`current`](Self::current) among the members, or `None` when it is not listed, which means an
    /// empty share and no error.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the own client id, the queues or the members are empty, in this order.
    pub fn place(&self) -> Result<Option<usize>> {
        if self.current.is_empty() || self.queues.is_empty() || self.members.is_empty() {
            return Err(self.unusable());
        }
        Ok(self.members.index_of(self.current))
    }

    #[cold]
    fn unusable(&self) -> Error {
        let what = if self.current.is_empty() {
            "the own client id is empty"
        } else if self.queues.is_empty() {
            "the list of queues is empty"
        } else {
            "the list of members is empty"
        };
        Error::new(ErrorKind::Config, format!("no queues can be allocated in group '{}': {what}", self.group))
    }

    /// Asks a strategy, which may be code of the user, and holds it to its word.
    ///
    /// # Errors
    /// The strategy's own error, or [`ErrorKind::UserCode`] when it panicked or named a queue that is not there.
    pub fn ask(&self, strategy: &dyn AllocateMessageQueueStrategy) -> Result<Share> {
        // Nothing of this crate is left half done by a panic inside: the input is only read, and what strategies here
        // keep between calls is put in place whole.
        let share = catch_unwind(AssertUnwindSafe(|| strategy.allocate(self))).map_err(|panic| {
            let why = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "without a text".to_owned());
            let text = format!("allocation strategy {} panicked in group '{}': {why}", strategy.name(), self.group);
            Error::new(ErrorKind::UserCode, text)
        })??;
        match share.highest_index() {
            Some(index) if index >= self.queues.len() => Err(Error::new(
                ErrorKind::UserCode,
                format!(
                    "allocation strategy {} named queue {index} of {} in group '{}'",
                    strategy.name(),
                    self.queues.len(),
                    self.group
                ),
            )),
            _ => Ok(share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wrong(fn() -> Share);

    impl AllocateMessageQueueStrategy for Wrong {
        fn name(&self) -> &str {
            "WRONG"
        }

        fn allocate(&self, _: &AllocateInput<'_>) -> Result<Share> {
            Ok((self.0)())
        }
    }

    fn ask(strategy: &dyn AllocateMessageQueueStrategy) -> Result<Share> {
        let queues: Arc<[MessageQueue]> = (0..3).map(|id| MessageQueue::new("T", "b", id)).collect();
        AllocateInput::new("G", "a", &queues, &Arc::new(Members::new(vec!["a".into()]))).ask(strategy)
    }

    #[test]
    fn a_strategy_that_panics_or_names_absent_queues_is_told_from_one_that_refuses() {
        assert_eq!(ask(&Wrong(|| Share::range(0..3))).unwrap().len(), 3);
        for (wrong, gist) in [
            (Wrong(|| Share::range(1..4)), "named queue 3 of 3"),
            (Wrong(|| Share::indexes(vec![0, 7, 1])), "named queue 7 of 3"),
            (Wrong(|| panic!("out of luck")), "out of luck"),
        ] {
            let error = ask(&wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UserCode);
            assert!(error.to_string().contains(gist), "{error}");
        }
    }
}
