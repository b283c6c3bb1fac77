//! Tells a user when the queues of a topic change, whoever reads them.

use super::core::Core;
use crate::instance::scheduled::{Job, ScheduledExecutor};
use crate::message::MessageQueue;
use crate::sync::{Mutex, Rank};
use crate::thread::contain;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Hears of a topic and all its readable queues, in order.
pub(super) type TopicListener = Arc<dyn Fn(&str, &[MessageQueue]) + Send + Sync>;

pub(super) struct TopicWatch {
    watched: Mutex<BTreeMap<Arc<str>, Watched>>,
    job: Arc<Job>,
}

struct Watched {
    listener: TopicListener,
    /// `None` until they were seen for the first time, which is no change.
    last: Option<Arc<[MessageQueue]>>,
}

impl TopicWatch {
    pub(super) fn new(executor: &Arc<ScheduledExecutor>, core: Weak<Core>, interval: Duration) -> Self {
        let job = Job::new(executor, move || {
            if let Some(core) = core.upgrade() {
                core.check_topics();
            }
            interval
        });
        Self { watched: Mutex::new(Rank::Leaf, BTreeMap::new()), job }
    }

    pub(super) fn stop(&self) {
        self.job.stop();
        self.watched.lock().clear();
    }
}

impl Core {
    /// Replaces an earlier listener of the topic.
    pub(super) fn watch_topic(&self, topic: &str, listener: TopicListener) {
        let last = self.queues_of(topic).inspect_err(|error| log::debug!("watching topic '{topic}': {error}")).ok();
        self.topics.watched.lock().insert(Arc::from(topic), Watched { listener, last });
        self.topics.job.run_after(self.config.topic_check_interval);
    }

    fn check_topics(&self) {
        let topics: Vec<_> = self.topics.watched.lock().keys().cloned().collect();
        for topic in topics {
            let now = match self.queues_of(&topic) {
                Ok(now) => now,
                Err(error) => {
                    log::debug!("the queues of topic '{topic}' stay as they were seen last: {error}");
                    continue;
                }
            };
            let told = {
                let mut watched = self.topics.watched.lock();
                let Some(watched) = watched.get_mut(&topic) else { continue };
                let before = watched.last.replace(now.clone());
                before.filter(|before| *before != now).map(|_| watched.listener.clone())
            };
            if let Some(listener) = told {
                log::info!("topic '{topic}' has {} queues to read now", now.len());
                if let Err(panic) = contain(|| listener(&topic, &now)) {
                    log::error!("the listener of topic '{topic}' in group '{}' panicked: {panic}", self.member.group);
                }
            }
        }
    }
}
