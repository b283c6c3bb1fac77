//! Settings of a producer. Source of names, defaults and bounds: `DefaultMQProducer` (04-producer 3.1).

use super::Producer;
use crate::config::{ClientConfig, builder_items, check_range, client_items};
use crate::error::{Error, ErrorKind, Result};
use crate::message::topic;
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct ProducerConfig {
    pub(crate) client: ClientConfig,
    pub(crate) group: String,
    pub(crate) topics: Vec<String>,
    pub(crate) send_timeout: Duration,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) retry_times: u32,
    pub(crate) retry_not_stored_ok: bool,
    pub(crate) compress_over: usize,
    pub(crate) compress_level: u32,
    pub(crate) max_message_size: usize,
    pub(crate) default_topic_queues: i32,
}

/// Settings of a [`Producer`], until [`start`](Self::start).
#[must_use = "a producer runs from `start` on"]
pub struct ProducerBuilder {
    config: ProducerConfig,
}

client_items!(ProducerBuilder, set_client, config.client);

builder_items!(ProducerBuilder, set_own {
    text {}
    values {
        /// Time for a whole send, all tries included. Default 3 s, from 10 ms to 10 min.
        send_timeout: Duration => config.send_timeout;
        /// Time for one try. `None` (default) gives each try an equal part of what is left, so that a silent broker cannot
        /// use up the time of the next one. From 10 ms to 10 min.
        attempt_timeout: Option<Duration> => config.attempt_timeout;
        /// Further tries, at other brokers where there are any, after a failed one. Default 2, up to 16.
        retry_times: u32 => config.retry_times;
        /// Tries another broker also when the message is stored less safely than asked for. Default false.
        retry_not_stored_ok: bool => config.retry_not_stored_ok;
        /// Bodies of this many bytes or more are compressed. Default 4096, from 1 to 1 GiB.
        compress_over: usize => config.compress_over;
        /// ZLIB level. Default 5, from 0 to 9.
        compress_level: u32 => config.compress_level;
        /// The largest body, before compression, in bytes. Default 4 MiB, from 1 to 16 MiB; brokers have a limit of their
        /// own, 4 MiB by default.
        max_message_size: usize => config.max_message_size;
        /// Queues on each broker of a topic that a first send creates. Default 4, from 1 to 1024; brokers allow 8 by
        /// default.
        default_topic_queues: i32 => config.default_topic_queues;
    }
});

impl ProducerBuilder {
    pub(super) fn new(group: impl Into<String>) -> Self {
        let config = ProducerConfig {
            client: ClientConfig::default(),
            group: group.into(),
            topics: Vec::new(),
            send_timeout: Duration::from_secs(3),
            attempt_timeout: None,
            retry_times: 2,
            retry_not_stored_ok: false,
            compress_over: 4096,
            compress_level: 5,
            max_message_size: 4 << 20,
            default_topic_queues: 4,
        };
        Self { config }
    }

    /// A topic whose route is fetched at the start, so that the first send need not.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.config.topics.push(topic.into());
        self
    }

    /// Sets an item by its name, from text. Durations are milliseconds or carry `ms`, `s`, `m` or `h`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when there is no such item, or the text is not a value of it.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        if self.set_client(name, value)? || self.set_own(name, value)? {
            return Ok(self);
        }
        Err(Error::new(ErrorKind::Config, format!("a producer has no item '{name}'")))
    }

    /// Checks the settings and starts the producer. A cluster that is away is no error here; sends fail until it is
    /// there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a wrong item, [`ErrorKind::State`] when a producer of the group runs under the same
    /// client id in this process, [`ErrorKind::Io`] when threads or sockets cannot be had.
    pub fn start(self) -> Result<Producer> {
        self.config.check()?;
        Producer::start(self.config)
    }
}

impl ProducerConfig {
    fn check(&self) -> Result<()> {
        topic::check_group(&self.group)?;
        self.client.check()?;
        for name in &self.topics {
            topic::check_topic(name)?;
        }
        let millis = |duration: Duration| duration.as_millis();
        check_range("send_timeout (ms)", millis(self.send_timeout), 10..=600_000)?;
        let attempt = self.attempt_timeout.unwrap_or(self.send_timeout);
        check_range("attempt_timeout (ms)", millis(attempt), 10..=600_000)?;
        check_range("retry_times", self.retry_times, 0..=16)?;
        check_range("compress_over", self.compress_over, 1..=1 << 30)?;
        check_range("compress_level", self.compress_level, 0..=9)?;
        check_range("max_message_size", self.max_message_size, 1..=16 << 20)?;
        check_range("default_topic_queues", self.default_topic_queues, 1..=1024)
    }
}

impl fmt::Debug for ProducerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProducerBuilder").field(&self.config).finish()
    }
}
