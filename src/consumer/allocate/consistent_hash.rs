//! `CONSISTENT_HASH`: members and queues on a ring; a queue goes to the member that comes next.

use super::memo::{PerMembers, PerQueues};
use super::positions::{HashFunction, md5_position};
use super::ring::{QueuePositions, Ring};
use super::routed::Routed;
use super::{AllocateInput, AllocateMessageQueueStrategy, Share};
use crate::error::Result;
use crate::sync::{Mutex, Rank};
use std::fmt;
use std::sync::Arc;

/// Puts members and queues onto a ring by hash; each queue goes to the member that comes next.
///
/// When a member joins or leaves, only the queues next to it move. The price is unevenness: with few queues for each
/// member some get several and some none. It is for groups that have Java members which use it; among members of this
/// library alone, [`AllocateBalanced`](super::AllocateBalanced) moves little too, and is even.
///
/// What is worked out is kept: the ring for a list of members, the positions of a list of queues, and all shares for
/// both together, so that a call for lists seen before is a look-up.
#[doc(alias = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash")]
pub struct AllocateConsistentHash {
    virtual_nodes: u32,
    function: HashFunction,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    queues: PerQueues<Arc<QueuePositions>>,
    members: PerMembers<Membership>,
}

#[derive(Default)]
struct Membership {
    ring: Option<Arc<Ring>>,
    routed: PerQueues<Routed>,
}

impl AllocateConsistentHash {
    /// Ten virtual nodes for each member and positions by MD5, the defaults of Java.
    pub fn new() -> Self {
        Self::with_virtual_nodes(10)
    }

    /// This many virtual nodes for each member: more of them make shares more even. With 0 nobody gets anything. All
    /// members of the group must use the same number.
    #[doc(alias = "virtualNodeCnt")]
    pub fn with_virtual_nodes(virtual_nodes: u32) -> Self {
        Self { virtual_nodes, function: HashFunction::Md5, known: Mutex::new(Rank::Leaf, Known::default()) }
    }

    /// Positions by a function of your own, the same at all members.
    #[doc(alias = "customHashFunction")]
    #[must_use]
    pub fn hashed_by(mut self, hash: impl Fn(&str) -> i64 + Send + Sync + 'static) -> Self {
        self.function = HashFunction::Own(Arc::new(hash));
        self.known = Mutex::new(Rank::Leaf, Known::default());
        self
    }

    /// The position of a key on the ring by the default function: the first four bytes of its MD5, big-endian, unsigned.
    ///
    /// ```
    /// use rocketmq_sync::AllocateConsistentHash;
    /// assert_eq!(AllocateConsistentHash::position("192.168.0.1@1001#1-0"), 3_845_969_514);
    /// ```
    pub fn position(key: &str) -> i64 {
        md5_position(key)
    }

    /// Works out all shares for lists not seen together before, and returns one. The hash function may be the user's,
    /// so no lock is held while it runs.
    #[cold]
    fn work_out(&self, input: &AllocateInput<'_>, place: usize) -> Share {
        let (queues, members) = (input.queues(), input.members());
        let (positions, ring, earlier) = {
            let known = &mut *self.known.lock();
            let ring = known.members.get(members).and_then(|membership| membership.ring.clone());
            let earlier = known.members.latest().and_then(|membership| membership.ring.clone());
            (known.queues.get(queues).cloned(), ring, earlier)
        };
        let positions = positions.unwrap_or_else(|| Arc::new(QueuePositions::new(queues, &self.function)));
        let ring = ring
            .unwrap_or_else(|| Arc::new(Ring::new(members, self.virtual_nodes, &self.function, earlier.as_deref())));
        let routed = ring.route(&positions);
        let share = routed.share(place);
        let known = &mut *self.known.lock();
        known.queues.insert(queues, positions);
        let membership = known.members.get_or_insert(members, Membership::default);
        membership.ring = Some(ring);
        membership.routed.insert(queues, routed);
        share
    }
}

impl Default for AllocateConsistentHash {
    fn default() -> Self {
        Self::new()
    }
}

impl AllocateMessageQueueStrategy for AllocateConsistentHash {
    fn name(&self) -> &str {
        "CONSISTENT_HASH"
    }

    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        let Some(place) = input.place()? else { return Ok(Share::none()) };
        let known = self.known.lock().members.get(input.members()).and_then(|membership| {
            let routed = membership.routed.get(input.queues())?;
            Some(routed.share(place))
        });
        Ok(known.unwrap_or_else(|| self.work_out(input, place)))
    }
}

impl fmt::Debug for AllocateConsistentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocateConsistentHash")
            .field("virtual_nodes", &self.virtual_nodes)
            .field("own_hash", &matches!(self.function, HashFunction::Own(_)))
            .finish_non_exhaustive()
    }
}
