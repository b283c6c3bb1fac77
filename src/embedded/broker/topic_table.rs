//! The topics of one broker, and when it makes one by itself.
//!
//! Kept from a real broker (`TopicConfigManager`): the system topics, creation by a first send through a template
//! topic with the inherit bit, retry and dead-letter topics made when they are needed. Left out: the file and its data
//! version, attributes other than as text, static topics. The number of topics is bounded, because a send may make one.

use super::delay::TIMER_TOPIC;
use super::transaction::HALF_TOPIC;
use crate::message::topic::{AUTO_CREATE_TOPIC, SCHEDULE_TOPIC, is_retry, is_system};
use std::collections::BTreeMap;
use std::sync::Arc;

/// May be read.
pub(crate) const READ: i32 = 4;
/// May be written.
pub(crate) const WRITE: i32 = 2;
/// May be the template of new topics.
pub(crate) const INHERIT: i32 = 1;
/// What nearly every topic has.
pub(crate) const READ_WRITE: i32 = READ | WRITE;

/// The topic belongs to a unit.
const UNIT: i32 = 1;
/// Some subscriber belongs to a unit.
pub(crate) const UNIT_SUB: i32 = 2;

/// Queues of the template topic.
const TEMPLATE_QUEUES: i32 = 8;

/// What a broker knows about a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) name: Arc<str>,
    pub(crate) read_queues: i32,
    pub(crate) write_queues: i32,
    pub(crate) perm: i32,
    pub(crate) sys_flag: i32,
    pub(crate) order: bool,
    /// `SINGLE_TAG` or `MULTI_TAG`.
    pub(crate) filter_type: Arc<str>,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Topic {
    pub(crate) fn new(name: impl Into<Arc<str>>, queues: i32, perm: i32) -> Self {
        Self {
            name: name.into(),
            read_queues: queues,
            write_queues: queues,
            perm,
            sys_flag: 0,
            order: false,
            filter_type: "SINGLE_TAG".into(),
            attributes: BTreeMap::new(),
        }
    }

    /// The queue ids that a send may use: below this.
    pub(crate) fn most_queues(&self) -> i32 {
        self.read_queues.max(self.write_queues)
    }

    pub(crate) fn is_multi_tag(&self) -> bool {
        &*self.filter_type == "MULTI_TAG"
    }
}

/// All topics of one broker.
#[derive(Debug)]
pub(crate) struct TopicTable {
    topics: BTreeMap<Arc<str>, Topic>,
    own_names: [String; 3],
    most: usize,
}

/// What a send says about the topic that it may have to make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Template<'a> {
    pub(crate) topic: &'a str,
    pub(crate) queues: i32,
    pub(crate) unit_mode: bool,
}

impl TopicTable {
    /// The table of a new broker. `auto_create` gives the template topic its inherit bit.
    pub(crate) fn new(cluster: &str, broker: &str, delay_levels: i32, auto_create: bool, most: usize) -> Self {
        let reply_topic = format!("{cluster}_REPLY_TOPIC");
        let mut table = Self { topics: BTreeMap::new(), own_names: [cluster.into(), broker.into(), reply_topic], most };
        let single = |name: &str| Topic::new(name, 1, READ_WRITE);
        let mut topics = vec![
            single("SELF_TEST_TOPIC"),
            single("OFFSET_MOVED_EVENT"),
            single(HALF_TOPIC),
            single("RMQ_SYS_TRANS_OP_HALF_TOPIC"),
            single(TIMER_TOPIC),
            single(&table.own_names[2]),
            Topic::new("BenchmarkTest", 1024, READ_WRITE),
            Topic::new(cluster, 16, READ_WRITE | INHERIT),
            Topic::new(broker, 1, READ_WRITE | INHERIT),
            Topic::new(SCHEDULE_TOPIC, delay_levels, READ_WRITE),
        ];
        if auto_create {
            topics.push(Topic::new(AUTO_CREATE_TOPIC, TEMPLATE_QUEUES, READ_WRITE | INHERIT));
        }
        for topic in topics {
            table.topics.insert(topic.name.clone(), topic);
        }
        table
    }

    pub(crate) fn get(&self, topic: &str) -> Option<&Topic> {
        self.topics.get(topic)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.topics.values()
    }

    /// Whether the topic belongs to the broker, so that no user makes or deletes it.
    pub(crate) fn is_system(&self, topic: &str) -> bool {
        is_system(topic) || self.own_names.iter().any(|name| name == topic)
    }

    /// Stores a topic as it is given. `None` when it was there like that already, or when there are too many.
    pub(crate) fn put(&mut self, topic: Topic) -> Option<Topic> {
        let known = self.topics.get(&topic.name);
        if known == Some(&topic) || (known.is_none() && self.topics.len() >= self.most) {
            return None;
        }
        self.topics.insert(topic.name.clone(), topic.clone());
        Some(topic)
    }

    pub(crate) fn remove(&mut self, topic: &str) -> Option<Topic> {
        self.topics.remove(topic)
    }

    /// Makes the topic that a message was sent to, if the rules allow. Returns what must be published.
    pub(crate) fn create_by_send(&mut self, topic: &str, template: Template<'_>) -> Option<Topic> {
        let from_template = self.topics.get(template.topic).filter(|found| found.perm & INHERIT != 0).map(|found| {
            let queues = template.queues.min(found.write_queues).max(0);
            let mut made = Topic::new(topic, queues, found.perm & !INHERIT);
            made.filter_type = found.filter_type.clone();
            if template.unit_mode {
                made.sys_flag = if is_retry(topic) { UNIT_SUB } else { UNIT };
            }
            made
        });
        let made = from_template.or_else(|| is_retry(topic).then(|| Topic::new(topic, 1, READ_WRITE)))?;
        self.put(made)
    }

    /// Makes a retry or dead-letter topic if it is missing, and corrects the order flag if it differs. Returns what
    /// must be published.
    pub(crate) fn ensure(&mut self, topic: &str, queues: i32, order: bool, sys_flag: i32) -> Option<Topic> {
        let wanted = match self.topics.get(topic) {
            Some(known) if known.order == order => return None,
            Some(known) => Topic { order, ..known.clone() },
            None => Topic { order, sys_flag, ..Topic::new(topic, queues, READ_WRITE) },
        };
        self.put(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(auto_create: bool) -> TopicTable {
        TopicTable::new("DefaultCluster", "broker-a", 18, auto_create, 100)
    }

    fn template(queues: i32) -> Template<'static> {
        Template { topic: AUTO_CREATE_TOPIC, queues, unit_mode: false }
    }

    #[test]
    fn a_first_send_makes_the_topic_from_the_template() {
        let mut table = table(true);
        let made = table.create_by_send("T", template(4)).unwrap();
        assert_eq!((made.read_queues, made.write_queues, made.perm, made.sys_flag), (4, 4, READ_WRITE, 0));
        assert_eq!(table.create_by_send("U", template(100)).unwrap().write_queues, 8);
        assert_eq!(table.create_by_send("V", template(-1)).unwrap().write_queues, 0);
        let unit = Template { unit_mode: true, ..template(4) };
        assert_eq!(table.create_by_send("W", unit).unwrap().sys_flag, UNIT);
    }

    #[test]
    fn without_auto_creation_only_a_retry_topic_is_made() {
        let mut table = table(false);
        assert_eq!(table.create_by_send("T", template(4)), None);
        assert_eq!(table.create_by_send("%RETRY%G", template(4)).unwrap().write_queues, 1);
        // A template without the inherit bit is none.
        let other = Template { topic: "%RETRY%G", queues: 4, unit_mode: false };
        assert_eq!(table.create_by_send("T", other), None);
    }

    #[test]
    fn publishes_only_what_changed() {
        let mut table = table(true);
        assert!(table.put(Topic::new("T", 4, READ_WRITE)).is_some());
        assert!(table.put(Topic::new("T", 4, READ_WRITE)).is_none());
        assert!(table.ensure("%RETRY%G", 1, false, 0).is_some());
        assert!(table.ensure("%RETRY%G", 9, false, 0).is_none());
        let ordered = table.ensure("%RETRY%G", 9, true, 0).unwrap();
        assert!(ordered.order && ordered.read_queues == 1);
        assert!(table.is_system("broker-a") && table.is_system("DefaultCluster_REPLY_TOPIC") && !table.is_system("T"));
    }

    #[test]
    fn stays_within_its_bound() {
        let mut table = table(true);
        for number in 0..200 {
            table.create_by_send(&format!("T{number}"), template(1));
        }
        assert_eq!(table.iter().count(), 100);
        assert!(table.put(Topic::new("T0", 9, READ_WRITE)).is_some());
    }
}
