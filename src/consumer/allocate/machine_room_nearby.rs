//! `MACHINE_ROOM_NEARBY-...`: the queues of a room go to the members in that room.

use super::memo::Memo;
use super::{AllocateInput, AllocateMessageQueueStrategy, Members, Share};
use crate::base::java_hash::string_cmp;
use crate::error::{Error, ErrorKind, Result};
use crate::message::MessageQueue;
use crate::sync::{Mutex, Rank};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Tells in which machine room a queue or a member is. The answers must be the same at every member and must not change;
/// `None` and the empty text both mean that it is in none.
#[doc(alias = "org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby.MachineRoomResolver")]
pub trait MachineRoomResolver: Send + Sync {
    /// The room of the broker that holds the queue.
    #[doc(alias = "brokerDeployIn")]
    fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>>;

    /// The room of a member, by its client id.
    #[doc(alias = "consumerDeployIn")]
    fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>>;
}

/// Shares the queues of each machine room out among the members in that room, by another strategy; the queues of a room
/// without members among all.
///
/// A queue or member without a room is an error, as in Java, so that the whole group stands still until it is found a
/// room; [`with_fallback_room`](Self::with_fallback_room) gives it one instead.
///
/// ```
/// use rocketmq_sync::{AllocateAveragely, AllocateInput, AllocateMachineRoomNearby, MachineRoomResolver};
/// use rocketmq_sync::{Members, MessageQueue};
/// use std::{borrow::Cow, sync::Arc};
///
/// /// Brokers are named `room-..`, and clients run with `room-..` as their address in the client id.
/// struct BeforeDash;
///
/// impl MachineRoomResolver for BeforeDash {
///     fn queue_room<'a>(&'a self, queue: &'a MessageQueue) -> Option<Cow<'a, str>> {
///         self.member_room(queue.broker_name())
///     }
///
///     fn member_room<'a>(&'a self, client_id: &'a str) -> Option<Cow<'a, str>> {
///         client_id.split_once('-').map(|(room, _)| room.into())
///     }
/// }
///
/// let queues: Arc<[MessageQueue]> = ["a-1", "b-1", "c-1"].map(|broker| MessageQueue::new("T", broker, 0)).into();
/// let members = Arc::new(Members::new(vec!["a-10.0.0.1@7".into(), "b-10.1.0.1@7".into()]));
/// let nearby = AllocateMachineRoomNearby::new(AllocateAveragely, BeforeDash);
/// let share = AllocateInput::new("G", "a-10.0.0.1@7", &queues, &members).ask(&nearby)?;
/// assert!(share.iter(&queues).eq([&queues[0], &queues[2]])); // its own room, and one where nobody is
/// # Ok::<(), rocketmq_sync::Error>(())
/// ```
#[doc(alias = "org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby")]
pub struct AllocateMachineRoomNearby {
    inner: Arc<dyn AllocateMessageQueueStrategy>,
    resolver: Box<dyn MachineRoomResolver>,
    fallback: Option<String>,
    name: String,
    memo: Memo<Rooms>,
}

/// Queues and members by room.
struct Rooms {
    /// In the order in which rooms without members are shared out.
    rooms: Vec<Room>,
    /// The room of each member; for a repeated id, of its first place.
    of_member: Vec<u32>,
    /// The last share worked out, and whose: a client asks for its own again and again.
    last: Mutex<Option<(usize, Share)>>,
}

struct Room {
    /// The queues as a list of their own, and where each stands in the full one.
    queues: Arc<[MessageQueue]>,
    indexes: Vec<u32>,
    members: Arc<Members>,
}

impl AllocateMachineRoomNearby {
    /// Within a room, `inner` decides.
    pub fn new(
        inner: impl AllocateMessageQueueStrategy + 'static,
        resolver: impl MachineRoomResolver + 'static,
    ) -> Self {
        let name = format!("MACHINE_ROOM_NEARBY-{}", inner.name());
        Self { inner: Arc::new(inner), resolver: Box::new(resolver), fallback: None, name, memo: Memo::default() }
    }

    /// The room of every queue and member for which the resolver has none. Not in Java: every member of the group must
    /// be of this library. Default: none, and such a queue or member is an error.
    #[must_use]
    pub fn with_fallback_room(mut self, room: impl Into<String>) -> Self {
        self.fallback = Some(room.into()).filter(|room| !room.is_empty());
        self
    }

    fn room_or_error<'a>(
        &'a self,
        room: Option<Cow<'a, str>>,
        group: &str,
        whose: impl FnOnce() -> String,
    ) -> Result<Cow<'a, str>> {
        let room = room.filter(|room| !room.is_empty()).or_else(|| self.fallback.as_deref().map(Cow::Borrowed));
        room.ok_or_else(|| {
            let text = format!("no machine room is known for {}, so group '{group}' cannot share its queues", whose());
            Error::new(ErrorKind::Config, text)
        })
    }

    fn rooms(&self, input: &AllocateInput<'_>) -> Result<Rooms> {
        let (queues, ids) = (input.queues(), input.members().ids());
        let room_of_queue =
            |queue| self.room_or_error(self.resolver.queue_room(queue), input.group(), || format!("queue {queue}"));
        let room_of_id = |id: &'_ Arc<str>| {
            self.room_or_error(self.resolver.member_room(id), input.group(), || format!("client id {id}"))
                .map(Cow::into_owned)
        };
        // All queues first: the one named in an error is the one that Java names.
        let queue_rooms: Vec<_> = queues.iter().map(room_of_queue).collect::<Result<_>>()?;
        let member_rooms: Vec<_> = ids.iter().map(room_of_id).collect::<Result<_>>()?;
        let mut names: Vec<&str> =
            queue_rooms.iter().map(|room| &**room).chain(member_rooms.iter().map(|room| &**room)).collect();
        names.sort_unstable_by(|a, b| string_cmp(a, b));
        names.dedup();
        let place = |room: &str| names.partition_point(|name| string_cmp(name, room).is_lt());
        let mut parts = vec![(Vec::new(), Vec::new()); names.len()];
        for (index, room) in (0u32..).zip(&queue_rooms) {
            parts[place(room)].0.push(index);
        }
        let of_member: Vec<u32> = member_rooms.iter().map(|room| place(room) as u32).collect();
        for (id, room) in ids.iter().zip(&of_member) {
            parts[*room as usize].1.push(id.clone());
        }
        let rooms = parts
            .into_iter()
            .map(|(indexes, ids)| Room {
                queues: indexes.iter().map(|index| queues[*index as usize].clone()).collect(),
                indexes,
                members: Arc::new(Members::in_order(ids)),
            })
            .collect();
        Ok(Rooms { rooms, of_member, last: Mutex::new(Rank::Leaf, None) })
    }

    /// The share of a member: of its own room, then of each room that has no member.
    fn share(&self, input: &AllocateInput<'_>, rooms: &Rooms, place: usize) -> Result<Share> {
        let own = rooms.of_member[place] as usize;
        let others = (0..rooms.rooms.len()).filter(|at| *at != own && rooms.rooms[*at].members.is_empty());
        let mut parts = Vec::new();
        for at in std::iter::once(own).chain(others) {
            let room = &rooms.rooms[at];
            if !room.queues.is_empty() {
                let members = if at == own { &room.members } else { input.members() };
                let part = AllocateInput::new(input.group(), input.current(), &room.queues, members);
                parts.push((room, part.ask(&*self.inner)?));
            }
        }
        if parts.iter().any(|(_, share)| share.is_own()) {
            let queues = parts.iter().flat_map(|(room, share)| share.iter(&room.queues));
            return Ok(Share::own(queues.cloned().collect::<Vec<_>>()));
        }
        let indexes = parts.iter().flat_map(|(room, share)| {
            (0..share.len()).filter_map(|nth| share.index(nth)).map(|index| room.indexes[index])
        });
        Ok(Share::indexes(indexes.collect::<Vec<_>>()))
    }
}

impl AllocateMessageQueueStrategy for AllocateMachineRoomNearby {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        let Some(place) = input.place()? else { return Ok(Share::none()) };
        let rooms = self.memo.get_or_try(input.queues(), input.members(), || self.rooms(input))?;
        if let Some((whose, share)) = &*rooms.last.lock()
            && *whose == place
        {
            return Ok(share.clone());
        }
        let share = self.share(input, &rooms, place)?;
        *rooms.last.lock() = Some((place, share.clone()));
        Ok(share)
    }
}

impl fmt::Debug for AllocateMachineRoomNearby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocateMachineRoomNearby")
            .field("name", &self.name)
            .field("fallback", &self.fallback)
            .finish_non_exhaustive()
    }
}
