//! The name servers: which one is asked, and what happens when it does not answer.
//!
//! One call may try every address within its budget: the chosen one first, then the others, each with a fair part of
//! what is left, so that a silent server cannot eat the time of the next (field report 77). The one that answered stays
//! chosen. Source of the calls: 02-consumer 3.1; the loop over the list is how 4.x clients did it.

use crate::api::Api;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::ResponseCode;
use crate::protocol::body::TopicRouteData;
use crate::time::Deadline;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) struct NameServers {
    addresses: Vec<Arc<str>>,
    chosen: AtomicUsize,
    timeout: Duration,
}

/// What the name servers said of a topic. "Absent" and a failed call are different things.
#[derive(Debug)]
pub(crate) enum RouteAnswer {
    Found(TopicRouteData),
    Absent,
}

impl NameServers {
    /// `start` spreads the clients of a process over the list.
    pub(crate) fn new(addresses: Vec<Arc<str>>, start: usize, timeout: Duration) -> Self {
        Self { chosen: AtomicUsize::new(start % addresses.len().max(1)), addresses, timeout }
    }

    pub(crate) fn addresses(&self) -> &[Arc<str>] {
        &self.addresses
    }

    /// Asks for the route of a topic. `doubt` asks another server before "no such topic" is believed.
    pub(crate) fn route(&self, api: &Api, topic: &str, doubt: bool) -> Result<RouteAnswer> {
        let deadline = Deadline::after(self.timeout);
        let count = self.addresses.len();
        let first = self.chosen.load(Ordering::Relaxed);
        let mut absent = false;
        let mut failure = None;
        for step in 0..count {
            let at = (first + step) % count;
            let left = deadline.remaining();
            if left.is_zero() {
                break;
            }
            let attempt = left / u32::try_from(count - step).unwrap_or(1);
            match api.topic_route(&self.addresses[at], topic, attempt) {
                Ok(route) => {
                    self.chosen.store(at, Ordering::Relaxed);
                    return Ok(RouteAnswer::Found(route));
                }
                Err(error) if error.response_code() == Some(ResponseCode::TOPIC_NOT_EXIST.0) => {
                    absent = true;
                    if !doubt {
                        self.chosen.store(at, Ordering::Relaxed);
                        return Ok(RouteAnswer::Absent);
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            // A server that failed might have known the topic.
            Some(error) => Err(error.context(format!("asking for the route of topic '{topic}'"))),
            None if absent => Ok(RouteAnswer::Absent),
            None => Err(Error::new(ErrorKind::Timeout, format!("no name server answered for topic '{topic}' in time"))),
        }
    }
}
