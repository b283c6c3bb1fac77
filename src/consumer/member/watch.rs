//! Looks for problems of the group: what this member sees by itself after each round, and what a broker tells of the
//! others (field reports 1 to 4).

use super::{Kind, Member};
use crate::consumer::event::ConsumerEvent;
use crate::consumer::health::{Health, differences};
use crate::consumer::held::HeldQueue;
use crate::consumer::queue_state::QueueState;
use crate::consumer::rebalance::Rebalancer;
use crate::instance::scheduled::{Job, ScheduledExecutor};
use crate::message::topic;
use crate::protocol::body::ConsumerConnection;
use crate::sync::{Mutex, Rank};
use crossbeam::channel::bounded;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A change of the group settles before it is looked at: a restarting member's old connection may still be listed.
const SETTLE: Duration = Duration::from_millis(500);
/// Without any change the group is looked at so often.
const PERIOD: Duration = Duration::from_secs(60);
/// A suspicion that may be a connection just being replaced is looked at again after this, and so is, at first, a group of
/// which something was not to be learnt.
const AGAIN: Duration = Duration::from_secs(2);
/// A conflict is looked at again so often, to tell when it is over.
const WHILE_IT_LASTS: Duration = Duration::from_secs(5);
/// So many other members are asked what they subscribe to when there is a reason to.
const MOST_ASKED: usize = 32;
/// So many are asked when there is none.
const ASKED_WITHOUT_REASON: usize = 2;

/// The job that asks a broker about the group.
pub(super) struct GroupWatch {
    job: Arc<Job>,
    is_due: Arc<AtomicBool>,
    /// Client ids that had more than one connection when the group was last looked at.
    twins: Mutex<BTreeMap<String, Vec<String>>>,
    /// Members that were asked without a reason, by client id, since all were.
    asked: Mutex<BTreeSet<String>>,
    /// Looks in a row that did not show what they should.
    failed: AtomicU32,
}

/// What members said of their subscriptions.
#[derive(Default)]
struct Opinions {
    /// Topic to who differs, and how.
    conflicts: BTreeMap<String, (Vec<String>, String)>,
    /// Some could not be asked: they are about to leave, not quite there yet, or cannot answer.
    is_incomplete: bool,
}

impl GroupWatch {
    pub(super) fn new(executor: &Arc<ScheduledExecutor>, kind: Weak<dyn Kind>) -> Self {
        let is_due = Arc::new(AtomicBool::new(false));
        let begun = is_due.clone();
        let job = Job::new(executor, move || {
            begun.store(false, Ordering::SeqCst);
            kind.upgrade().map_or(PERIOD, |kind| kind.member().check_group())
        });
        Self {
            job,
            is_due,
            twins: Mutex::new(Rank::Leaf, BTreeMap::new()),
            asked: Mutex::new(Rank::Leaf, BTreeSet::new()),
            failed: AtomicU32::new(0),
        }
    }

    /// Whom to ask when nothing looks wrong: the members in turn, new ones first.
    fn in_turn(&self, others: &BTreeSet<&str>) -> Vec<String> {
        let mut asked = self.asked.lock();
        asked.retain(|id| others.contains(&**id));
        if asked.len() == others.len() {
            asked.clear();
        }
        let next = others.iter().filter(|id| !asked.contains(**id)).take(ASKED_WITHOUT_REASON);
        let next: Vec<_> = next.map(|id| (*id).to_owned()).collect();
        asked.extend(next.iter().cloned());
        next
    }

    /// When to look again after one that failed: soon, and less and less so.
    fn after_failure(&self) -> Duration {
        let failed = self.failed.fetch_add(1, Ordering::Relaxed);
        AGAIN.saturating_mul(1 << failed.min(5)).min(PERIOD)
    }

    fn soon(&self) {
        // Asked for again before it ran, it keeps its time: a storm of changes must not put it off for ever.
        if !self.is_due.swap(true, Ordering::SeqCst) {
            self.job.run_after(SETTLE);
        }
    }

    pub(super) fn stop(&self) {
        self.job.stop();
    }
}

impl Member {
    /// Notes a problem and tells it if it is new.
    pub(crate) fn problem(&self, event: ConsumerEvent) {
        if self.problems.begin(&event) {
            self.tell(&event);
        }
    }

    pub(super) fn problems_of(&self, kind: &'static str, now: Vec<ConsumerEvent>) {
        let (fresh, over) = self.problems.replace(kind, now);
        for event in fresh {
            self.tell(&event);
        }
        if over > 0 {
            log::info!("group '{}': {over} problems of kind {kind} are over", self.group);
        }
    }

    /// Looks at the group when its change has settled.
    pub(crate) fn check_group_soon(&self) {
        self.watch.soon();
    }

    /// What a round shows without asking anybody.
    pub(super) fn check_shapes(&self, rebalancer: &Rebalancer) {
        let crowded = rebalancer
            .shapes()
            // Every group of more members than brokers has members without a queue of its retry topic.
            .filter(|(name, queues, members)| !topic::is_retry(name) && *members > *queues)
            .map(|(topic, queues, members)| ConsumerEvent::MoreMembersThanQueues {
                topic: topic.clone(),
                members,
                queues,
            })
            .collect();
        self.problems_of("more_members_than_queues", crowded);
        let routeless = self
            .subscriptions
            .topics()
            .into_iter()
            .filter(|name| !topic::is_retry(name) && self.instance.is_known_absent(name))
            .map(|topic| ConsumerEvent::TopicWithoutRoute { topic })
            .collect();
        self.problems_of("topic_without_route", routeless);
    }

    /// Asks a broker who is connected for the group and what it takes the group's subscription to be. Returns when to
    /// ask again.
    fn check_group(&self) -> Duration {
        if self.is_stopping() || !self.kind().is_some_and(|kind| kind.shares_queues()) {
            return PERIOD;
        }
        let timeout = self.request_timeout();
        let topics = self.subscriptions.topics();
        let Some(broker) = topics.iter().find_map(|topic| self.instance.brokers_of(topic).into_iter().next()) else {
            return self.watch.after_failure();
        };
        let connections = match self.instance.api().consumer_connections(&broker, &self.group, timeout) {
            Ok(connections) => connections,
            Err(error) => {
                log::debug!("group '{}' could not be looked at: {error}", self.group);
                return self.watch.after_failure();
            }
        };
        // In broadcasting equal ids share nothing but their name: brokers tell members by connection.
        let twins = if self.is_broadcasting() { BTreeMap::new() } else { twins(&connections) };
        let suspects = self.watch.twins.lock().clone();
        let sure = twins.iter().filter(|(id, _)| suspects.contains_key(*id));
        let sure = sure
            .map(|(client_id, addresses)| ConsumerEvent::DuplicateClientId {
                client_id: client_id.clone(),
                addresses: addresses.clone(),
            })
            .collect();
        self.problems_of("duplicate_client_id", sure);
        let is_suspicious = !twins.is_empty();
        *self.watch.twins.lock() = twins;
        let own = self.subscriptions.all();
        let differ = differences(&own, connections.subscription_table.values());
        let own_id = self.instance.client_id();
        let others = connections.connection_set.iter().map(|one| &*one.client_id).filter(|id| *id != &**own_id);
        let others: BTreeSet<&str> = others.collect();
        // The group's table is that of the last heartbeat, so it differs and agrees by turns, and the turns may keep step
        // with the looks. So members are asked as well: many when there is a reason, else few, since each question is
        // relayed to one of them.
        let is_known = self.problems.has("subscription_conflict");
        let asked = if !differ.is_empty() || is_known {
            others.iter().take(MOST_ASKED).map(|id| (*id).to_owned()).collect()
        } else {
            self.watch.in_turn(&others)
        };
        let Opinions { mut conflicts, is_incomplete } = self.ask_members(&broker, asked);
        for (topic, reason) in differ {
            conflicts.entry(topic).or_insert_with(|| (Vec::new(), format!("at the broker {reason}")));
        }
        let conflicts = conflicts
            .into_iter()
            .map(|(topic, (members, reason))| ConsumerEvent::SubscriptionConflict {
                topic: topic.into(),
                members,
                reason,
            })
            .collect();
        self.problems_of("subscription_conflict", conflicts);
        if !is_incomplete {
            self.watch.failed.store(0, Ordering::Relaxed);
        }
        if is_suspicious {
            AGAIN
        } else if self.problems.has("subscription_conflict") {
            WHILE_IT_LASTS
        } else if is_incomplete {
            self.watch.after_failure()
        } else {
            PERIOD
        }
    }

    /// Asks members what they subscribe to.
    fn ask_members(&self, broker: &Arc<str>, members: Vec<String>) -> Opinions {
        let (done, answers) = bounded(members.len());
        for id in members {
            let done = done.clone();
            let timeout = self.request_timeout();
            self.instance.api().running_info(broker, &self.group, &id.clone(), timeout, move |info| {
                let _ = done.send((id, info));
            });
        }
        drop(done);
        let own = self.subscriptions.all();
        let mut opinions = Opinions::default();
        for (id, info) in answers {
            match info {
                Ok(info) => {
                    for (topic, reason) in differences(&own, &info.subscription_set) {
                        let (members, told) = opinions.conflicts.entry(topic).or_default();
                        *told = format!("by {id} {reason}");
                        members.push(id.clone());
                    }
                }
                Err(error) => {
                    log::debug!("member {id} of group '{}' was not asked: {error}", self.group);
                    opinions.is_incomplete = true;
                }
            }
        }
        opinions
    }

    /// How it is; `state` tells it of a queue.
    pub(crate) fn health(&self, state: impl Fn(&HeldQueue) -> QueueState) -> Health {
        Health {
            is_running: !self.is_stopping(),
            problems: self.problems.all(),
            queues: self.held.all().iter().map(|held| state(held)).collect(),
        }
    }
}

/// Client ids with more than one connection, and their addresses.
fn twins(connections: &ConsumerConnection) -> BTreeMap<String, Vec<String>> {
    let mut by_id: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for connection in &connections.connection_set {
        by_id.entry(connection.client_id.to_string()).or_default().push(connection.client_addr.to_string());
    }
    by_id.retain(|_, addresses| addresses.len() > 1);
    by_id
}
