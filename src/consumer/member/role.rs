//! A consumer as its instance sees it, the same for every kind.

use super::Kind;
use crate::instance::role::{ConsumerRole, DirectAnswer, PullTicket, Round};
use crate::message::MessageQueue;
use crate::protocol::body::{ConsumerData, ConsumerRunningInfo};
use crate::time::Deadline;
use bytes::Bytes;
use std::sync::Arc;

impl<K: Kind> ConsumerRole for K {
    fn group(&self) -> &Arc<str> {
        &self.member().group
    }

    fn heartbeat_data(&self) -> ConsumerData {
        self.member().heartbeat_data(self.consume_type())
    }

    fn topics(&self) -> Vec<Arc<str>> {
        self.member().topics()
    }

    fn rebalance(&self) -> Round {
        self.member().rebalance()
    }

    fn pull(&self, ticket: PullTicket) {
        self.member().pull(&ticket);
    }

    fn persist_offsets(&self, deadline: Deadline) {
        self.persist(deadline);
    }

    fn registered(&self) {
        self.member().registered();
    }

    fn connected(&self, address: &str) {
        self.member().connected(address);
    }

    fn disconnected(&self, address: &str) {
        self.member().disconnected(address);
    }

    fn running_info(&self, with_threads: bool) -> Option<ConsumerRunningInfo> {
        Some(self.describe(with_threads))
    }

    fn consume_directly(&self, record: Bytes, broker_name: Option<&str>, answer: DirectAnswer) {
        self.direct(record, broker_name, answer);
    }

    fn consume_offsets(&self, topic: &str) -> Vec<(MessageQueue, i64)> {
        self.member().consume_offsets(topic)
    }

    fn reset_offsets(&self, topic: &str, offsets: Vec<(MessageQueue, i64)>) {
        self.member().reset_offsets(topic, offsets);
    }
}
