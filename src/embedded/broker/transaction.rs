//! Half messages: messages that wait for the word of their producer.
//!
//! Kept from a real broker (`TransactionalMessageServiceImpl`): a half message lies in `RMQ_SYS_TRANS_HALF_TOPIC` under
//! REAL_TOPIC and REAL_QID, invisible to consumers; when its producer says nothing for the time-out (or the message's
//! own CHECK_IMMUNITY_TIME_IN_SECONDS, if longer), a member of the group PGROUP is asked by request 39, in turn; each
//! question is about a new copy with new offsets; whether or not somebody could be asked, it counts; after the most
//! questions or 72 h the message goes to `TRANS_CHECK_MAX_TIME_TOPIC`.
//! Different: the first question comes when the time-out is over and the others one interval after each other, where
//! upstream looks every interval; the time counts from the arrival here, not from the producer's clock. Stronger: what
//! was decided is known at once and for good (upstream writes it down within 3 s), an older copy of a message stands
//! for the newest, and a second commit delivers nothing; a commit takes the room of the half message,
//! so a full broker does not refuse it. Left out: the messages of the op topic.

use super::append::{Draft, Stored};
use super::outbox::Outbox;
use super::state::{Refusal, State, refuse};
use crate::message::store_codec::{StoredFields, encode_stored};
use crate::message::{MessageExt, properties, sys_flag};
use crate::protocol::header::CheckTransactionStateRequestHeader;
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use crate::time::to_millis;
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Where half messages lie.
pub(crate) const HALF_TOPIC: &str = "RMQ_SYS_TRANS_HALF_TOPIC";
/// Where messages go that nobody decided about.
const UNDECIDED_TOPIC: &str = "TRANS_CHECK_MAX_TIME_TOPIC";
/// Most half messages at once.
const MOST_PENDING: usize = 1_000_000;
/// After so long nobody is asked any more.
const OLDEST: Duration = Duration::from_secs(72 * 3600);

/// How long a broker waits for producers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransactionLimits {
    /// Until the first question.
    pub(crate) timeout: Duration,
    /// Between questions.
    pub(crate) interval: Duration,
    /// Most questions.
    pub(crate) most_checks: u32,
}

impl TransactionLimits {
    /// How long nobody is asked about a message that brings this text as its own time, in seconds.
    pub(crate) fn immunity(&self, own_seconds: Option<&str>) -> Duration {
        let own = own_seconds.and_then(|text| text.parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
        self.timeout.max(own).min(Duration::from_secs(366 * 86_400))
    }
}

#[derive(Debug)]
struct Half {
    /// Where its newest copy lies in the log.
    position: i64,
    /// Where older copies lay; producers may still speak of them.
    earlier: Vec<i64>,
    since: Instant,
    due: Instant,
    checks: u32,
}

/// Half messages nothing was decided about.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    halves: HashMap<u64, Half>,
    by_position: HashMap<i64, u64>,
    by_time: BTreeSet<(Instant, u64)>,
    next_id: u64,
    /// Counts questions, so that members are asked in turn.
    turn: usize,
}

impl Transactions {
    pub(crate) fn len(&self) -> usize {
        self.halves.len()
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// The next half message that somebody must be asked about.
    pub(crate) fn due(&self, now: Instant) -> Option<u64> {
        self.by_time.first().filter(|(due, _)| *due <= now).map(|(_, id)| *id)
    }

    fn add(&mut self, position: i64, now: Instant, immunity: Duration) {
        let id = self.next_id;
        self.next_id += 1;
        let half = Half { position, earlier: Vec::new(), since: now, due: now + immunity, checks: 0 };
        self.by_time.insert((half.due, id));
        self.by_position.insert(position, id);
        self.halves.insert(id, half);
    }

    /// A new copy of a half message is there, and somebody was asked about it.
    fn renew(&mut self, id: u64, position: i64, due: Instant) {
        let Some(half) = self.halves.get_mut(&id) else { return };
        self.by_time.remove(&(half.due, id));
        half.due = due;
        half.checks += 1;
        half.earlier.push(std::mem::replace(&mut half.position, position));
        self.by_time.insert((due, id));
        self.by_position.insert(position, id);
    }

    /// The half message whose copy lies, or lay, at a position.
    pub(crate) fn find(&self, position: i64) -> Option<u64> {
        self.by_position.get(&position).copied()
    }

    /// Where the newest copy of a half message lies.
    pub(crate) fn newest(&self, id: u64) -> Option<i64> {
        self.halves.get(&id).map(|half| half.position)
    }

    /// Forgets a half message.
    pub(crate) fn remove(&mut self, id: u64) {
        let Some(half) = self.halves.remove(&id) else { return };
        self.by_time.remove(&(half.due, id));
        for position in half.earlier.iter().chain([&half.position]) {
            self.by_position.remove(position);
        }
    }
}

impl State {
    /// Stores a message that its producer will commit or roll back later.
    pub(crate) fn put_half(&mut self, mut draft: Draft<'_>, out: &mut Outbox) -> Result<Stored, Refusal> {
        if self.transactions.len() >= MOST_PENDING {
            return refuse(ResponseCode::SYSTEM_BUSY, format!("{MOST_PENDING} transactions are undecided"));
        }
        if let Some(unique_key) = draft.properties.get(properties::UNIQ_KEY).map(str::to_owned) {
            draft.properties.set(properties::TRANSACTION_ID, unique_key);
        }
        let immunity =
            self.config.transactions.immunity(draft.properties.get(properties::CHECK_IMMUNITY_TIME_IN_SECONDS));
        let topic = std::mem::replace(&mut draft.topic, HALF_TOPIC.into());
        draft.properties.set(properties::REAL_TOPIC, topic);
        draft.properties.set(properties::REAL_QUEUE_ID, draft.queue_id.to_string());
        draft.queue_id = 0;
        draft.sys_flag &= !sys_flag::TRANSACTION_MASK;
        let stored = self.put_plain(draft, out)?;
        self.transactions.add(stored.position, self.now(), immunity);
        Ok(stored)
    }

    /// Asks a producer what became of a transaction, or gives the message up.
    pub(crate) fn check_transaction(&mut self, id: u64, out: &mut Outbox) {
        let now = self.now();
        let Some(half) = self.transactions.halves.get(&id) else { return };
        let (position, checks, since) = (half.position, half.checks, half.since);
        // Dropped to make room: upstream passes it over as well.
        let Some(message) = self.message_at(position) else {
            self.transactions.remove(id);
            return;
        };
        let limits = self.config.transactions;
        let is_given_up = checks >= limits.most_checks || now.duration_since(since) > OLDEST;
        let mut draft = Draft::copy_of(&message);
        if is_given_up {
            log::warn!("embedded broker {}: nobody decided about a message to {HALF_TOPIC}", self.config.name);
            let made = self.topics.ensure(UNDECIDED_TOPIC, 1, false, 0);
            self.publish(made);
            draft.topic = UNDECIDED_TOPIC.into();
        } else {
            draft.properties.set(properties::TRANSACTION_CHECK_TIMES, (checks + 1).to_string());
        }
        match self.replace(position, draft, out) {
            Ok(_) if is_given_up => self.transactions.remove(id),
            Ok(stored) => {
                self.transactions.renew(id, stored.position, now + limits.interval);
                self.ask_producer(stored.position, out);
            }
            Err(refusal) => {
                log::error!("embedded broker {}: a half message is lost: {}", self.config.name, refusal.remark);
                self.transactions.remove(id);
            }
        }
    }

    fn ask_producer(&mut self, position: i64, out: &mut Outbox) {
        let Some(message) = self.message_at(position) else { return };
        let group = message.property(properties::PRODUCER_GROUP).unwrap_or_default();
        let members = self.producers.get(group);
        let turn = self.transactions.turn % members.map_or(1, |members| members.len().max(1));
        self.transactions.turn = self.transactions.turn.wrapping_add(1);
        let producer = members.and_then(|members| members.keys().nth(turn)).and_then(|id| self.connections.get(id));
        let Some(producer) = producer else {
            log::warn!("embedded broker {}: no producer of group {group} to ask", self.config.name);
            return;
        };
        let Some(body) = as_meant(&message) else { return };
        let unique_key = message.property(properties::UNIQ_KEY);
        let offset_id = message.offset_msg_id();
        let header = CheckTransactionStateRequestHeader {
            tran_state_table_offset: message.queue_offset(),
            commit_log_offset: position,
            msg_id: unique_key,
            transaction_id: unique_key,
            offset_msg_id: Some(&offset_id),
            topic: Some(HALF_TOPIC),
            bname: Some(&self.config.name),
        };
        let request = RemotingCommand::request(RequestCode::CHECK_TRANSACTION_STATE, &header);
        out.send(producer, request.oneway().with_body(body));
    }
}

/// The topic and queue that a message waits for, or `None` for one that names none.
pub(crate) fn real_queue(message: &MessageExt) -> Option<(&str, i32)> {
    let queue_id = message.property(properties::REAL_QUEUE_ID)?.parse().ok()?;
    Some((message.property(properties::REAL_TOPIC)?, queue_id))
}

/// The record of a half message, with the queue that its producer sent it to.
fn as_meant(message: &MessageExt) -> Option<Bytes> {
    let (topic, queue_id) = real_queue(message)?;
    let mut text = String::new();
    properties::encode(message.properties(), &mut text);
    let fields = StoredFields {
        queue_id,
        flag: message.flag(),
        queue_offset: message.queue_offset(),
        commit_log_offset: message.commit_log_offset(),
        sys_flag: message.sys_flag(),
        born_millis: to_millis(message.born_time()),
        born_host: message.born_host(),
        store_millis: to_millis(message.store_time()),
        store_host: message.store_host(),
        reconsume_times: message.reconsume_times(),
        prepared_transaction_offset: message.prepared_transaction_offset(),
        ..StoredFields::new(topic, message.body(), &text)
    };
    let mut record = Vec::with_capacity(fields.size());
    encode_stored(&fields, &mut record).ok()?;
    Some(record.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stands_for_the_message_until_it_is_decided() {
        let start = Instant::now();
        let mut table = Transactions::default();
        table.add(100, start, Duration::from_secs(6));
        table.add(200, start, Duration::from_secs(60));
        assert_eq!((table.due(start), table.due(start + Duration::from_secs(6))), (None, Some(0)));
        table.renew(0, 300, start + Duration::from_secs(36));
        assert_eq!((table.find(100), table.find(300), table.find(200)), (Some(0), Some(0), Some(1)));
        assert_eq!(table.next_due(), Some(start + Duration::from_secs(36)));
        assert_eq!(table.newest(0), Some(300));
        table.remove(0);
        assert_eq!((table.find(100), table.find(300), table.len()), (None, None, 1));
        table.remove(1);
        assert!(table.by_position.is_empty() && table.by_time.is_empty());
    }

    #[test]
    fn a_messages_own_time_counts_when_it_is_longer() {
        let limits =
            TransactionLimits { timeout: Duration::from_secs(6), interval: Duration::from_secs(30), most_checks: 15 };
        for (own, seconds) in [(None, 6), (Some("5"), 6), (Some("x"), 6), (Some("-1"), 6), (Some("60"), 60)] {
            assert_eq!(limits.immunity(own), Duration::from_secs(seconds), "{own:?}");
        }
        assert!(limits.immunity(Some("18446744073709551615")) < Duration::from_secs(400 * 86_400));
    }
}
