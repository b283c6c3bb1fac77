//! How the consumer comes to its queues: by subscriptions, or as the user names them.

use super::core::{Core, Mode};
use crate::consumer::held::{HeldQueue, QueuePhase};
use crate::consumer::rebalance::diff::diff;
use crate::consumer::selector::MessageSelector;
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

impl Core {
    /// Decides on the way to queues, once.
    pub(super) fn enter_mode(&self, mode: Mode) -> Result<()> {
        if *self.mode.get_or_init(|| mode) == mode { Ok(()) } else { Err(super::modes_exclude_each_other()) }
    }

    pub(super) fn enter_subscribe(&self, topic: &str, selector: &MessageSelector) -> Result<()> {
        // A mistake in the expression decides nothing.
        selector.subscription(topic, 0)?;
        self.enter_mode(Mode::Subscribe)
    }

    /// Holds just these queues from now on. Those that go do not wait for what was polled of them.
    pub(super) fn assign(&self, queues: Vec<MessageQueue>) -> Result<()> {
        self.enter_mode(Mode::Assign)?;
        let member = &self.member;
        let topics: BTreeSet<Arc<str>> = queues.iter().map(|queue| queue.shared_topic().clone()).collect();
        let mut subscriptions = BTreeMap::new();
        for topic in &topics {
            let given = self.config.assigned_selectors.iter().rev().find(|(name, _)| **name == **topic);
            let selector = given.map_or_else(MessageSelector::all, |(_, selector)| selector.clone());
            let data = selector.subscription(topic, 0)?;
            member.check_filters([&data])?;
            subscriptions.insert(topic.clone(), Arc::new(data));
        }
        // The first question for a start offset goes to a broker that a route names.
        for topic in &topics {
            if let Err(error) = member.instance.route(topic) {
                log::warn!("group '{}' waits for a route of assigned topic '{topic}': {error}", member.group);
            }
        }
        // The listener is called behind the lock, since it may assign and stop.
        let exchange = {
            let _one_at_a_time = member.rebalancer.lock();
            member.check_running()?;
            member.subscriptions.replace(subscriptions);
            let held: Vec<_> = member.held.all().iter().map(|held| held.queue.clone()).collect();
            let changes = diff(&held, &queues);
            member.held.exchange(&changes.drop, &changes.add)
        };
        member.follow(exchange, Duration::ZERO, Duration::ZERO);
        Ok(())
    }

    /// The ownership of a queue that is held and not being given up.
    pub(super) fn owned(&self, queue: &MessageQueue) -> Result<Arc<HeldQueue>> {
        let held = self.member.held.of_topic(queue.topic()).into_iter().find(|held| held.queue == *queue);
        held.filter(|held| held.phase() < QueuePhase::Draining).ok_or_else(|| {
            let text = format!("group '{}' does not hold {queue} here at the moment", self.member.group);
            Error::new(ErrorKind::State, text)
        })
    }
}
