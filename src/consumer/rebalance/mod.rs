//! Rebalance: which queues should be ours now, compared with those that are.
//!
//! A round asks for each topic: which queues are there (the route), who are the members (a broker), what is our share
//! (the strategy, on sorted input, so that all members agree). A question that fails, a list that is empty or that does
//! not name us changes nothing: what is held stays held, and the next round comes soon (field report 17).
//! Source: `RebalanceImpl` (02-consumer 5.3).

pub(crate) mod diff;
pub(crate) mod start_offset;

use crate::consumer::allocate::{AllocateInput, AllocateMessageQueueStrategy, Members};
use crate::error::{Error, ErrorKind, Result};
use crate::instance::role::Round;
use crate::message::{MessageQueue, topic as topic_names};
use crate::protocol::body::GetConsumerListByGroupResponseBody;
use bytes::Bytes;
use diff::{Diff, diff};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A round in which something failed is followed by another after this long.
const SOON: Duration = Duration::from_secs(1);

/// What a round may ask of the cluster.
pub trait GroupView {
    /// The queues of a topic that can be read, in order; `None` while the topic has no route.
    fn readable(&self, topic: &str) -> Option<Arc<[MessageQueue]>>;
    /// Brokers that can be asked for the members, in the order in which all members ask.
    fn brokers_of(&self, topic: &str) -> Vec<Arc<str>>;
    /// The members of the group as a broker lists them: the body of its answer.
    fn member_list(&self, broker: &Arc<str>) -> Result<Bytes>;
    /// No broker named the members with this one among them; one that hears of us again may.
    fn not_listed(&self);
}

/// What a group whose members do not share tells each of them: it is the only one, so it has all queues.
pub(crate) fn list_of_one(client_id: &Arc<str>) -> Bytes {
    GetConsumerListByGroupResponseBody { consumer_id_list: vec![client_id.clone()] }.encode()
}

/// The part of a consumer that holds queues.
pub trait QueueOwner {
    /// The queues of the topic that are ours and not being given up.
    fn held(&self, topic: &str) -> Vec<MessageQueue>;
    /// Topics of queues that are held, subscribed or not.
    fn held_topics(&self) -> Vec<Arc<str>>;
    /// Gives up and takes over. `alone`: nobody else can still be working on what is taken.
    fn apply(&self, changes: Diff, alone: bool);
}

/// What the last round saw of a topic. While its inputs are the same, so is the result, and the round costs nothing
/// for each queue.
struct Seen {
    queues: Arc<[MessageQueue]>,
    members: Arc<Members>,
}

/// A list of members as a broker sent it, and read.
struct MemberList {
    body: Bytes,
    members: Arc<Members>,
}

/// A topic that cannot be balanced. Texts differ from round to round (counts, times), so kinds are compared.
struct Trouble {
    kind: (ErrorKind, Option<i32>),
    rounds: u32,
}

/// The first failure of a topic is common at a start, when brokers have not heard of us; one that lasts is told.
const TOLD_AT: u32 = 2;

/// Runs the rounds of one consumer.
pub struct Rebalancer {
    group: Arc<str>,
    client_id: Arc<str>,
    strategy: Arc<dyn AllocateMessageQueueStrategy>,
    seen: BTreeMap<Arc<str>, Seen>,
    /// The last list of each broker asked: an unchanged answer is not read again.
    lists: BTreeMap<Arc<str>, MemberList>,
    /// What is wrong with a topic, so that it is told once.
    troubles: BTreeMap<Arc<str>, Trouble>,
}

impl Rebalancer {
    /// For a member of this group.
    pub fn new(group: Arc<str>, client_id: Arc<str>, strategy: Arc<dyn AllocateMessageQueueStrategy>) -> Self {
        let (seen, lists, troubles) = Default::default();
        Self { group, client_id, strategy, seen, lists, troubles }
    }

    /// One round over all topics. Changes of all topics are applied together, so that what must be drained drains at
    /// the same time.
    pub fn round(&mut self, view: &dyn GroupView, topics: &[Arc<str>], owner: &dyn QueueOwner) -> Round {
        let mut asked = BTreeMap::new();
        let mut changes = Diff::default();
        let mut alone = true;
        let mut round = Round::Settled;
        let mut news = Vec::new();
        for topic in topics {
            match self.one_topic(view, topic, owner, &mut asked) {
                Ok(Some((change, seen))) => {
                    alone &= seen.members.len() == 1;
                    news.push((topic.clone(), seen));
                    changes.add.extend(change.add);
                    changes.drop.extend(change.drop);
                    self.recovered(topic);
                }
                Ok(None) => self.recovered(topic),
                Err(error) => {
                    // A retry topic exists from the group's first heartbeat on; until then there is nothing to read.
                    if !topic_names::is_retry(topic) {
                        round = Round::Again(SOON);
                    }
                    self.trouble(topic, &error);
                }
            }
        }
        for topic in owner.held_topics().iter().filter(|held| !topics.contains(held)) {
            log::info!("group '{}' does not subscribe to '{topic}' any more; its queues are given up", self.group);
            changes.drop.extend(owner.held(topic));
            self.seen.remove(topic);
        }
        self.seen.retain(|topic, _| topics.contains(topic));
        self.troubles.retain(|topic, _| topics.contains(topic));
        if !changes.is_empty() {
            owner.apply(changes, alone);
        }
        // Not before it is applied: a round that panics half-way must decide again.
        self.seen.extend(news);
        round
    }

    /// What changes for one topic, and what it was decided on; `None`: nothing since the last round.
    fn one_topic(
        &mut self,
        view: &dyn GroupView,
        topic: &Arc<str>,
        owner: &dyn QueueOwner,
        asked: &mut BTreeMap<Arc<str>, Arc<Members>>,
    ) -> Result<Option<(Diff, Seen)>> {
        let queues = view
            .readable(topic)
            .ok_or_else(|| Error::new(ErrorKind::NoRoute, format!("topic '{topic}' has no route yet")))?;
        let members = self.members(view, topic, asked)?;
        if self.seen.get(topic).is_some_and(|seen| Arc::ptr_eq(&seen.queues, &queues) && seen.members == members) {
            return Ok(None);
        }
        let share = if queues.is_empty() {
            Vec::new()
        } else {
            let input = AllocateInput::new(&self.group, &self.client_id, &queues, &members);
            // A panic of the strategy, which may be the user's own, is a failure of this topic and of no other.
            let share = input.ask(&*self.strategy);
            share.map_err(|error| error.context("the allocation strategy failed"))?.to_vec(&queues)
        };
        let held = owner.held(topic);
        let change = diff(&held, &share);
        if !change.is_empty() {
            log::info!(
                "group '{}', topic '{topic}': {} of {} queues with {} members by {}; new {:?}, given up {:?}",
                self.group,
                share.len(),
                queues.len(),
                members.len(),
                self.strategy.name(),
                change.add,
                change.drop,
            );
        }
        Ok(Some((change, Seen { queues, members })))
    }

    /// The members of the group, from the first of the topic's brokers that answers. All members ask in the same
    /// order, so that they see the same list even while brokers disagree (field report 8).
    fn members(
        &mut self,
        view: &dyn GroupView,
        topic: &str,
        asked: &mut BTreeMap<Arc<str>, Arc<Members>>,
    ) -> Result<Arc<Members>> {
        let mut failure = None;
        for address in view.brokers_of(topic) {
            if let Some(members) = asked.get(&address) {
                return Ok(members.clone());
            }
            let list = view.member_list(&address);
            match list.and_then(|body| self.read_list(&address, body)) {
                Ok(members) => {
                    asked.insert(address, members.clone());
                    return Ok(members);
                }
                Err(error) => failure = Some(error),
            }
        }
        view.not_listed();
        let no_broker = || Error::new(ErrorKind::NoRoute, format!("the route of topic '{topic}' names no broker"));
        Err(failure.unwrap_or_else(no_broker).context(format!("asking for the members of group '{}'", self.group)))
    }

    fn read_list(&mut self, address: &Arc<str>, body: Bytes) -> Result<Arc<Members>> {
        if let Some(list) = self.lists.get(address)
            && list.body == body
        {
            return Ok(list.members.clone());
        }
        let ids = GetConsumerListByGroupResponseBody::decode(&body)?.consumer_id_list;
        if !ids.iter().any(|id| **id == *self.client_id) {
            let text = format!("the broker lists {} members and not this one, {}", ids.len(), self.client_id);
            return Err(Error::new(ErrorKind::State, text).with_address(&**address));
        }
        let mut members = Arc::new(Members::new(ids));
        // Brokers list in any order: the same members are the same object, whatever the order of this answer.
        if let Some(known) = self.lists.values().find(|list| list.members == members) {
            members = known.members.clone();
        }
        self.lists.insert(address.clone(), MemberList { body, members: members.clone() });
        Ok(members)
    }

    /// Queues and members of each topic, as the last good round saw them.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = (&Arc<str>, usize, usize)> {
        self.seen.iter().map(|(topic, seen)| (topic, seen.queues.len(), seen.members.len()))
    }

    fn trouble(&mut self, topic: &Arc<str>, error: &Error) {
        let kind = (error.kind(), error.response_code());
        let trouble = self.troubles.entry(topic.clone()).or_insert(Trouble { kind, rounds: 0 });
        if trouble.kind != kind {
            *trouble = Trouble { kind, rounds: trouble.rounds.min(TOLD_AT - 1) };
        }
        trouble.rounds += 1;
        let is_told = trouble.rounds == TOLD_AT && !topic_names::is_retry(topic);
        let level = if is_told { log::Level::Warn } else { log::Level::Debug };
        log::log!(level, "group '{}' keeps its queues of '{topic}' as they are: {error}", self.group);
    }

    fn recovered(&mut self, topic: &Arc<str>) {
        if self.troubles.remove(topic).is_some_and(|trouble| trouble.rounds >= TOLD_AT) {
            log::info!("group '{}' can balance topic '{topic}' again", self.group);
        }
    }
}

impl fmt::Debug for Rebalancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} by {}", self.client_id, self.group, self.strategy.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::allocate::{AllocateAveragely, Share};
    use std::cell::RefCell;

    /// Two topics of two queues each, on one broker that lists only this member.
    struct Alone;

    impl GroupView for Alone {
        fn readable(&self, topic: &str) -> Option<Arc<[MessageQueue]>> {
            Some((0..2).map(|id| MessageQueue::new(topic, "b", id)).collect())
        }
        fn brokers_of(&self, _: &str) -> Vec<Arc<str>> {
            vec!["127.0.0.1:10911".into()]
        }
        fn member_list(&self, _: &Arc<str>) -> Result<Bytes> {
            Ok(Bytes::from_static(br#"{"consumerIdList":["us"]}"#))
        }
        fn not_listed(&self) {
            unreachable!("it is listed");
        }
    }

    #[derive(Default)]
    struct Holder(RefCell<Vec<MessageQueue>>);

    impl QueueOwner for Holder {
        fn held(&self, topic: &str) -> Vec<MessageQueue> {
            self.0.borrow().iter().filter(|queue| queue.topic() == topic).cloned().collect()
        }
        fn held_topics(&self) -> Vec<Arc<str>> {
            self.0.borrow().iter().map(|queue| queue.shared_topic().clone()).collect()
        }
        fn apply(&self, changes: Diff, alone: bool) {
            assert!(alone && changes.drop.is_empty());
            self.0.borrow_mut().extend(changes.add);
        }
    }

    /// Averaging, but that it panics for topic "b".
    struct Picky;

    impl AllocateMessageQueueStrategy for Picky {
        fn name(&self) -> &str {
            "PICKY"
        }
        fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
            assert!(input.queues()[0].topic() != "b", "a defect of the strategy");
            AllocateAveragely.allocate(input)
        }
    }

    #[test]
    fn a_strategy_that_panics_for_one_topic_leaves_the_others_balanced() {
        let mut rebalancer = Rebalancer::new("g".into(), "us".into(), Arc::new(Picky));
        let holder = Holder::default();
        let round = rebalancer.round(&Alone, &["a".into(), "b".into(), "c".into()], &holder);
        assert_eq!(round, Round::Again(SOON));
        let held = holder.0.borrow().iter().map(|queue| queue.topic().to_owned()).collect::<Vec<_>>();
        assert_eq!(held, ["a", "a", "c", "c"]);
    }
}
