//! Problems that last: which there are now, which are new. And what a liveness probe wants to know.

use super::event::ConsumerEvent;
use super::queue_state::QueueState;
use crate::protocol::SubscriptionData;
use crate::sync::{Mutex, Rank};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// How a consumer is, for a liveness probe or a status page.
#[derive(Debug, Clone)]
pub struct Health {
    pub(crate) is_running: bool,
    pub(crate) problems: Vec<ConsumerEvent>,
    pub(crate) queues: Vec<QueueState>,
}

impl Health {
    /// Whether the consumer is started and not stopped. A cluster that is away does not make it false: restarting the
    /// program would not bring it back.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether it runs, no problem is known, and no queue stands still but those that the user has suspended.
    pub fn is_good(&self) -> bool {
        self.is_running && self.problems.is_empty() && self.standing_still().all(QueueState::is_suspended)
    }

    /// The problems there are now.
    pub fn problems(&self) -> &[ConsumerEvent] {
        &self.problems
    }

    /// The queues that stand still; each knows its reason.
    pub fn standing_still(&self) -> impl Iterator<Item = &QueueState> {
        self.queues.iter().filter(|queue| queue.standing_still().is_some())
    }
}

/// The problems that last, by kind and subject.
pub(crate) struct Problems {
    known: Mutex<BTreeMap<(&'static str, String), ConsumerEvent>>,
}

impl Problems {
    pub(crate) fn new() -> Self {
        Self { known: Mutex::new(Rank::Leaf, BTreeMap::new()) }
    }

    /// Notes a problem; `true` when it is new. What happens at one moment is always new.
    pub(crate) fn begin(&self, event: &ConsumerEvent) -> bool {
        let Some(subject) = event.subject() else { return true };
        self.known.lock().insert((event.kind(), subject.to_owned()), event.clone()).is_none()
    }

    /// Puts `now` in place of all problems of this kind: the new ones, and how many are over.
    pub(crate) fn replace(&self, kind: &'static str, now: Vec<ConsumerEvent>) -> (Vec<ConsumerEvent>, usize) {
        let mut known = self.known.lock();
        let before = known.len();
        let is_now = |subject: &String| now.iter().any(|event| event.subject() == Some(&**subject));
        known.retain(|(known_kind, subject), _| *known_kind != kind || is_now(subject));
        let over = before - known.len();
        let fresh = now
            .into_iter()
            .filter(|event| {
                let key = (kind, event.subject().unwrap_or_default().to_owned());
                known.insert(key, event.clone()).is_none()
            })
            .collect();
        (fresh, over)
    }

    pub(crate) fn has(&self, kind: &str) -> bool {
        self.known.lock().keys().any(|(known, _)| *known == kind)
    }

    pub(crate) fn all(&self) -> Vec<ConsumerEvent> {
        self.known.lock().values().cloned().collect()
    }
}

/// How another set of subscriptions differs from ours, by topic. Pure. The group's retry topic is everybody's.
pub(crate) fn differences<'a>(
    own: &BTreeMap<Arc<str>, Arc<SubscriptionData>>,
    other: impl IntoIterator<Item = &'a SubscriptionData>,
) -> BTreeMap<String, String> {
    let other: BTreeMap<&str, &SubscriptionData> = other.into_iter().map(|data| (&*data.topic, data)).collect();
    let mut differ = BTreeMap::new();
    for (topic, ours) in own {
        match other.get(&**topic) {
            None => drop(differ.insert(topic.to_string(), format!("not subscribed, here '{}'", ours.sub_string))),
            Some(theirs) if !is_same(ours, theirs) => {
                let mut text = String::new();
                let _ = write!(text, "subscribed with '{}', here with '{}'", theirs.sub_string, ours.sub_string);
                differ.insert(topic.to_string(), text);
            }
            Some(_) => {}
        }
    }
    for (topic, theirs) in other {
        if !own.contains_key(topic) {
            differ.insert(topic.to_owned(), format!("subscribed with '{}', not here", theirs.sub_string));
        }
    }
    differ
}

fn is_same(a: &SubscriptionData, b: &SubscriptionData) -> bool {
    a.expression_type == b.expression_type
        && if a.tags_set.is_empty() && b.tags_set.is_empty() {
            a.sub_string.trim() == b.sub_string.trim()
        } else {
            a.tags_set == b.tags_set
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(topic: &str, expression: &str) -> SubscriptionData {
        SubscriptionData::tag_expression(topic, expression, 1).unwrap()
    }

    #[test]
    fn spelling_and_version_make_no_difference_but_tags_and_topics_do() {
        let own: BTreeMap<Arc<str>, _> = [subscription("a", "x || y"), subscription("b", "*")]
            .into_iter()
            .map(|data| (Arc::from(&*data.topic), Arc::new(data)))
            .collect();
        let same = [subscription("a", "y||x"), SubscriptionData { sub_version: 9, ..subscription("b", "*") }];
        assert!(differences(&own, &same).is_empty());
        let other = [subscription("a", "x"), subscription("c", "*")];
        let differ = differences(&own, &other);
        assert_eq!(differ.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(differ["a"].contains("'x'") && differ["a"].contains("'x || y'"), "{differ:?}");
    }

    #[test]
    fn a_lasting_problem_is_new_once_until_it_is_over() {
        let problems = Problems::new();
        let event = || ConsumerEvent::TopicWithoutRoute { topic: "t".into() };
        assert!(problems.begin(&event()));
        assert!(!problems.begin(&event()));
        assert_eq!(problems.replace("topic_without_route", vec![event()]), (vec![], 0));
        assert_eq!(problems.replace("topic_without_route", vec![]), (vec![], 1));
        assert_eq!(problems.replace("topic_without_route", vec![event()]).0.len(), 1);
        assert_eq!(problems.all().len(), 1);
    }
}
