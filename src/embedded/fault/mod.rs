//! Faults on purpose: what an embedded cluster does wrong when a test asks for it.
//!
//! A fault stands between the wire and the handlers of a server, so whatever the client is, it meets the fault as it
//! would meet a broken peer. `later` runs what was delayed.

mod later;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use table::{FaultTable, Faulty, Place};

use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Something that goes wrong with requests to an [`EmbeddedCluster`](crate::EmbeddedCluster): a kind, and to which
/// requests it happens. Without further words it happens to every request of every broker and of the name server.
///
/// ```
/// use rocketmq_sync::{EmbeddedCluster, Fault, Message, Producer, RequestCode, ResponseCode};
///
/// let cluster = EmbeddedCluster::builder().topic("orders", 4).start()?;
/// // The first send finds the broker busy; the answer to the second one gets lost half way.
/// let sends = || [RequestCode::SEND_MESSAGE, RequestCode::SEND_MESSAGE_V2];
/// let busy = cluster.inject(Fault::refuse(ResponseCode::SYSTEM_BUSY, "too much to do").on(sends()).times(1));
/// let torn = cluster.inject(Fault::half_answer().on(sends()).times(1));
///
/// let producer = Producer::builder("shop").name_servers(cluster.name_servers()).start()?;
/// producer.send(&Message::new("orders", "hello"))?; // the producer tries again, twice
/// assert_eq!((busy.hits(), torn.hits()), (1, 1));
/// # Ok::<(), rocketmq_sync::Error>(())
/// ```
///
/// Faults are asked in the order in which they were injected; the first one that happens counts. The answer that
/// [`half_answer`](Self::half_answer) tears, that is lost, doubled or late, may come long after its request, as with a
/// pull that waits. Requests that a broker sends by itself, such as notices (`NOTIFY_CONSUMER_IDS_CHANGED`) and checks
/// of transactions, meet faults as well, by their own codes; those that it passes on for administrators do not.
#[derive(Clone)]
#[must_use = "a fault does nothing until it is injected"]
pub struct Fault {
    kind: Kind,
    codes: Vec<RequestCode>,
    place: Option<Place>,
    when: Option<Arc<Condition>>,
    chance: f64,
    skip: u64,
    times: u64,
}

type Condition = dyn Fn(&RemotingCommand) -> bool + Send + Sync;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Delay(Duration),
    Lose,
    Close,
    Refuse(ResponseCode, String),
    Answer(AnswerFault),
}

/// What happens to the answer of a request that was handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerFault {
    Lose,
    Delay(Duration),
    Half,
    Double,
    Swap,
}

impl Fault {
    fn new(kind: Kind) -> Self {
        Self { kind, codes: Vec::new(), place: None, when: None, chance: 1.0, skip: 0, times: u64::MAX }
    }

    /// The request is handled so much later, by the cluster's clock; other requests of the connection pass it by.
    pub fn delay(by: Duration) -> Self {
        Self::new(Kind::Delay(by))
    }

    /// The request is lost: nobody handles it, and nobody answers. For a notice: it is not sent.
    pub fn lose() -> Self {
        Self::new(Kind::Lose)
    }

    /// The connection is closed instead of handling the request.
    pub fn close() -> Self {
        Self::new(Kind::Close)
    }

    /// The request is answered with this code and text instead of handling it. A notice is lost.
    pub fn refuse(code: ResponseCode, remark: impl Into<String>) -> Self {
        Self::new(Kind::Refuse(code, remark.into()))
    }

    /// The request is handled, and its answer lost.
    pub fn lose_answer() -> Self {
        Self::new(Kind::Answer(AnswerFault::Lose))
    }

    /// The request is handled, and its answer sent so much later, by the cluster's clock.
    pub fn delay_answer(by: Duration) -> Self {
        Self::new(Kind::Answer(AnswerFault::Delay(by)))
    }

    /// The request is handled; the first half of its answer is sent, then the connection is closed.
    pub fn half_answer() -> Self {
        Self::new(Kind::Answer(AnswerFault::Half))
    }

    /// The request is handled, and answered twice. A notice is sent twice.
    pub fn double_answer() -> Self {
        Self::new(Kind::Answer(AnswerFault::Double))
    }

    /// The request is handled; its answer is sent after the next one on the same connection, so not at all when no
    /// other comes.
    pub fn swap_answers() -> Self {
        Self::new(Kind::Answer(AnswerFault::Swap))
    }

    /// Only for requests of these codes.
    pub fn on(mut self, codes: impl IntoIterator<Item = RequestCode>) -> Self {
        self.codes.extend(codes);
        self
    }

    /// Only at this broker.
    pub fn on_broker(mut self, name: impl AsRef<str>) -> Self {
        self.place = Some(Place::Broker(name.as_ref().into()));
        self
    }

    /// Only at the name server.
    pub fn on_name_server(mut self) -> Self {
        self.place = Some(Place::NameServer);
        self
    }

    /// Only for requests of which this says yes, for example by a field of their header:
    /// `|request| request.ext_fields.get("topic") == Some("orders")`. It runs on an I/O thread of the cluster.
    pub fn when(mut self, condition: impl Fn(&RemotingCommand) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(condition));
        self
    }

    /// Happens to this share of the requests, 0.0 to 1.0, drawn from the seed of the cluster
    /// ([`fault_seed`](crate::EmbeddedClusterBuilder::fault_seed)). Default 1.0.
    pub fn chance(mut self, share: f64) -> Self {
        self.chance = share;
        self
    }

    /// Lets this many requests pass first. Default 0.
    pub fn skip(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// Happens so often at most. Default: without end.
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("kind", &self.kind)
            .field("codes", &self.codes)
            .field("place", &self.place)
            .field("conditional", &self.when.is_some())
            .field("chance", &self.chance)
            .field("skip", &self.skip)
            .field("times", &self.times)
            .finish()
    }
}

/// A fault that a cluster has, to see how often it happened and to end it. It does not end when this is dropped.
#[derive(Debug)]
pub struct InjectedFault {
    id: u64,
    hits: Arc<AtomicU64>,
    table: Arc<FaultTable>,
}

impl InjectedFault {
    /// How often it happened so far.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Ends it. What it delayed goes on to its time.
    pub fn remove(self) {
        self.table.remove(self.id);
    }
}
