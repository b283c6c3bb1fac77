//! What a consumer tells its user beside messages: queues that come and go, and problems worth a look.

use crate::message::MessageQueue;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Queues that came to this consumer or left it.
#[derive(Debug)]
pub struct RebalanceEvent {
    queues: Vec<MessageQueue>,
    owned: usize,
}

impl RebalanceEvent {
    pub(crate) fn new(queues: Vec<MessageQueue>, owned: usize) -> Self {
        Self { queues, owned }
    }

    /// The queues this event is about, in order. Those of the group's retry topic are among them, under its name.
    pub fn queues(&self) -> &[MessageQueue] {
        &self.queues
    }

    /// How many queues the consumer holds after the event.
    pub fn owned(&self) -> usize {
        self.owned
    }
}

/// Hears of queues that come and go. Called on the rebalance thread, one event at a time; a slow method delays the
/// next round, so hand long work to another thread. A panic is caught and logged.
pub trait RebalanceListener: Send + Sync + 'static {
    /// These queues are ours now. Their first messages come after this call.
    fn assigned(&self, event: &RebalanceEvent) {
        let _ = event;
    }

    /// These queues belong to others now. Running listeners have ended and the offsets are stored.
    fn revoked(&self, event: &RebalanceEvent) {
        let _ = event;
    }

    /// These queues belong to others now, and what was running had not ended, or an offset could not be stored: the
    /// next owner may see messages again.
    fn lost(&self, event: &RebalanceEvent) {
        let _ = event;
    }
}

/// A condition that a user should know of. Each is told once when it begins, and logged as a warning.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsumerEvent {
    /// A broker refused the offset of a pull, and the consumer went on elsewhere.
    OffsetCorrected {
        /// The queue.
        queue: MessageQueue,
        /// The offset asked for.
        asked: i64,
        /// Where it goes on.
        corrected: i64,
    },
    /// A stored message cannot be read; it was passed over after three tries.
    MessageUnreadable {
        /// The queue.
        queue: MessageQueue,
        /// Its offset in the queue.
        offset: i64,
        /// What is wrong with it.
        reason: String,
    },
    /// A message's body cannot be inflated; it goes to the dead-letter topic.
    BodyUnreadable {
        /// The queue.
        queue: MessageQueue,
        /// Its offset in the queue.
        offset: i64,
        /// What is wrong with it.
        reason: String,
    },
    /// A listener has not returned within `consume_timeout`: its messages are sent back, to be consumed again, and the
    /// offset can pass them. The call goes on; what it answers later changes nothing. In broadcasting, where nothing can be
    /// sent back, it is told and nothing else.
    ConsumeTimeout {
        /// The queue.
        queue: MessageQueue,
        /// The offset of the first message of the call.
        offset: i64,
        /// How many messages the call has.
        messages: usize,
        /// How long the listener has been running.
        after: Duration,
    },
    /// Brokers keep answering that they do not know this subscription. Usually members of one group subscribe to
    /// different topics: each heartbeat then replaces the others' set, and messages are missed.
    SubscriptionConflict {
        /// The topic that is not known, or not with this expression.
        topic: Arc<str>,
        /// Client ids of members that subscribe to something else, as far as they could be asked.
        members: Vec<String>,
        /// What differs.
        reason: String,
    },
    /// Two connections use one client id. Both get the same share of the queues, and each failed message comes twice.
    DuplicateClientId {
        /// The id.
        client_id: String,
        /// The addresses that use it, as the broker sees them.
        addresses: Vec<String>,
    },
    /// Some members of the group have no queue of the topic.
    MoreMembersThanQueues {
        /// The topic.
        topic: Arc<str>,
        /// How many members the group has.
        members: usize,
        /// How many queues the topic has.
        queues: usize,
    },
    /// Another member of the group holds the broker's lock of a queue that was ours, or may have held it: after a break
    /// longer than brokers keep locks, or when a broker restarted. The queue is taken again, from its stored offset, when
    /// the broker locks it for us.
    LockLost {
        /// The queue.
        queue: MessageQueue,
    },
    /// The name servers know no route of a subscribed topic.
    TopicWithoutRoute {
        /// The topic.
        topic: Arc<str>,
    },
    /// The offset file of a broadcasting consumer was damaged when it was read. Offsets come from its predecessor, or
    /// where that is damaged too, from `consume_from`. Damaged files are kept aside.
    OffsetFileDamaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The offset file of a broadcasting consumer cannot be written: consumption goes on, and after a restart what was
    /// not written comes again.
    OffsetFileUnwritable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A broadcasting consumer has failed a message for the last time and passes it over: in this model there is no
    /// retry topic and no dead-letter topic.
    MessageDropped {
        /// The queue.
        queue: MessageQueue,
        /// Its offset in the queue.
        offset: i64,
        /// How often it was delivered.
        deliveries: i32,
    },
}

impl ConsumerEvent {
    /// A short name, the same in every version, for logs and scripts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::OffsetCorrected { .. } => "offset_corrected",
            Self::MessageUnreadable { .. } => "message_unreadable",
            Self::BodyUnreadable { .. } => "body_unreadable",
            Self::ConsumeTimeout { .. } => "consume_timeout",
            Self::SubscriptionConflict { .. } => "subscription_conflict",
            Self::DuplicateClientId { .. } => "duplicate_client_id",
            Self::MoreMembersThanQueues { .. } => "more_members_than_queues",
            Self::LockLost { .. } => "lock_lost",
            Self::TopicWithoutRoute { .. } => "topic_without_route",
            Self::OffsetFileDamaged { .. } => "offset_file_damaged",
            Self::OffsetFileUnwritable { .. } => "offset_file_unwritable",
            Self::MessageDropped { .. } => "message_dropped",
        }
    }
}

impl ConsumerEvent {
    /// What the problem is about; with the kind it names a condition that lasts. `None` for what happens at one moment.
    pub(crate) fn subject(&self) -> Option<&str> {
        match self {
            Self::SubscriptionConflict { topic, .. }
            | Self::MoreMembersThanQueues { topic, .. }
            | Self::TopicWithoutRoute { topic } => Some(topic),
            Self::DuplicateClientId { client_id, .. } => Some(client_id),
            Self::OffsetFileUnwritable { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for ConsumerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OffsetCorrected { queue, asked, corrected } => {
                write!(f, "the broker refused offset {asked} of {queue}; consumption goes on at {corrected}")
            }
            Self::MessageUnreadable { queue, offset, reason } => {
                write!(f, "message {offset} of {queue} cannot be read and was passed over: {reason}")
            }
            Self::BodyUnreadable { queue, offset, reason } => {
                write!(f, "the body of message {offset} of {queue} cannot be read; it becomes a dead letter: {reason}")
            }
            Self::ConsumeTimeout { queue, offset, messages, after } => write!(
                f,
                "the listener has not returned for {after:?} from {messages} messages beginning at offset {offset} of {queue}"
            ),
            Self::SubscriptionConflict { topic, members, reason } => {
                write!(
                    f,
                    "members of the group subscribe differently, so messages of '{topic}' are missed: {reason}; give all of them the same topics and expressions"
                )?;
                if members.is_empty() { Ok(()) } else { write!(f, "; others: {}", members.join(", ")) }
            }
            Self::DuplicateClientId { client_id, addresses } => write!(
                f,
                "client id '{client_id}' is used by {}; give each member an instance_name of its own",
                addresses.join(" and ")
            ),
            Self::MoreMembersThanQueues { topic, members, queues } => write!(
                f,
                "{members} members share {queues} queues of '{topic}', so some have none; add queues or stop members"
            ),
            Self::LockLost { queue } => {
                write!(
                    f,
                    "the broker may have locked {queue} for another member; it is taken again when it is locked for us"
                )
            }
            Self::TopicWithoutRoute { topic } => {
                write!(f, "the name servers know no route of topic '{topic}'; create it, or wait for its brokers")
            }
            Self::OffsetFileDamaged { path, reason } => {
                write!(f, "the offset file {path} was damaged, what is left of it counts: {reason}")
            }
            Self::OffsetFileUnwritable { path, reason } => write!(
                f,
                "the offset file {path} cannot be written, a restart would repeat messages: {reason}; see to its folder"
            ),
            Self::MessageDropped { queue, offset, deliveries } => {
                write!(f, "message {offset} of {queue} failed in {deliveries} deliveries and was passed over")
            }
        }
    }
}

/// Hears of problems. Called on service threads: return soon.
pub(crate) type EventListener = Arc<dyn Fn(&ConsumerEvent) + Send + Sync>;
