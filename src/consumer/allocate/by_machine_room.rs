//! `MACHINE_ROOM`: only the queues of chosen rooms.

use super::memo::PerQueues;
use super::{AllocateInput, AllocateMessageQueueStrategy, Share};
use crate::error::Result;
use crate::message::MessageQueue;
use crate::sync::{Mutex, Rank};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Shares out the queues on brokers in chosen machine rooms. A broker belongs to a room by its name, `room@broker`; the
/// queues of all other brokers are left unread by this group.
///
/// Each member gets a block of the queues chosen, and the first members one more from the end where the division leaves
/// a rest. (Releases of the Java client before 4.8 took the block out of all queues; members of such a release
/// disagree with this one.)
#[doc(alias = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom")]
pub struct AllocateByMachineRoom {
    rooms: BTreeSet<String>,
    chosen: Mutex<PerQueues<Arc<[u32]>>>,
}

impl AllocateByMachineRoom {
    /// The queues in these rooms are shared out.
    pub fn new(rooms: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let rooms = rooms.into_iter().map(Into::into).collect();
        Self { rooms, chosen: Mutex::new(Rank::Leaf, PerQueues::default()) }
    }

    fn is_chosen(&self, queue: &MessageQueue) -> bool {
        // Java's split drops empty parts at the end: `room@b@` has two parts, `room@` has one.
        let mut parts = queue.broker_name().trim_end_matches('@').split('@');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(room), Some(_), None) => self.rooms.contains(room),
            _ => false,
        }
    }

    /// The indexes of the queues in our rooms.
    fn chosen(&self, queues: &Arc<[MessageQueue]>) -> Arc<[u32]> {
        let mut lists = self.chosen.lock();
        if let Some(chosen) = lists.get(queues) {
            return chosen.clone();
        }
        let chosen: Arc<[u32]> =
            queues.iter().zip(0..).filter(|(queue, _)| self.is_chosen(queue)).map(|(_, index)| index).collect();
        lists.insert(queues, chosen.clone());
        chosen
    }
}

impl AllocateMessageQueueStrategy for AllocateByMachineRoom {
    fn name(&self) -> &str {
        "MACHINE_ROOM"
    }

    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        let Some(place) = input.place()? else { return Ok(Share::none()) };
        let chosen = self.chosen(input.queues());
        let members = input.members().len();
        let (each, rest) = (chosen.len() / members, chosen.len() % members);
        let block = (place * each) as u32..((place + 1) * each) as u32;
        let extra = (place < rest).then(|| chosen[place + each * members]);
        Ok(Share::listed(chosen, block, extra))
    }
}

impl fmt::Debug for AllocateByMachineRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocateByMachineRoom").field("rooms", &self.rooms).finish_non_exhaustive()
    }
}
