//! Queue allocation: which member of a group reads which queue.
//!
//! Every member computes its own share, from the same ordered queues and the same ordered client ids, and nobody checks
//! the result: what one member skips and no other takes stays unread. So a strategy is a function of
//! [`AllocateInput`] and of settings that are the same at every member, and all members of a group use the same one.
//!
//! | Strategy | Name | Use it for |
//! |---|---|---|
//! | [`AllocateAveragely`] | `AVG` | the default of every RocketMQ client: even, contiguous blocks |
//! | [`AllocateAveragelyByCircle`] | `AVG_BY_CIRCLE` | even, and each broker's queues spread over the members |
//! | [`AllocateConsistentHash`] | `CONSISTENT_HASH` | little movement in a group with Java members; uneven |
//! | [`AllocateBalanced`] | `BALANCED_STICKY` | even and with little movement; every member must be of this library |
//! | [`AllocateByMachineRoom`] | `MACHINE_ROOM` | only the queues of chosen machine rooms |
//! | [`AllocateMachineRoomNearby`] | `MACHINE_ROOM_NEARBY-` + inner | queues of a room go to members in that room |
//! | [`AllocateByConfig`] | `CONFIG` | a fixed list of queues |
//!
//! The first six give what the Java classes of the same name give for any input, ill-formed lists included, because
//! members of one group must agree: `tests/allocation_vectors.rs` holds them to it.
//!
//! Source: `org.apache.rocketmq.client.consumer.rebalance` (02-consumer 6).

mod averagely;
mod averagely_by_circle;
mod balanced;
mod by_config;
mod by_machine_room;
mod consistent_hash;
mod hash;
mod input;
mod machine_room_nearby;
mod md5_lanes;
mod members;
mod memo;
mod positions;
mod ring;
mod routed;
mod share;

pub use averagely::AllocateAveragely;
pub use averagely_by_circle::AllocateAveragelyByCircle;
pub use balanced::AllocateBalanced;
pub use by_config::AllocateByConfig;
pub use by_machine_room::AllocateByMachineRoom;
pub use consistent_hash::AllocateConsistentHash;
pub use input::AllocateInput;
pub use machine_room_nearby::{AllocateMachineRoomNearby, MachineRoomResolver};
pub use members::Members;
pub use share::{Share, ShareIter};

use crate::error::Result;
use std::sync::Arc;

/// Decides the share of one member of a group.
///
/// Strategies of your own are welcome. Every member of the group must run the same one, with the same settings; it must
/// depend on its input alone, never on the clock, on chance, or on what an earlier call returned; and taken over all
/// members its shares should name each queue once. It is asked again only when queues or members have changed.
///
/// # Example
/// The first member listed reads everything, the others stand by:
///
/// ```
/// use rocketmq_sync::{AllocateInput, AllocateMessageQueueStrategy, Members, MessageQueue, Result, Share};
/// use std::sync::Arc;
///
/// struct FirstTakesAll;
///
/// impl AllocateMessageQueueStrategy for FirstTakesAll {
///     fn name(&self) -> &str {
///         "FIRST_TAKES_ALL"
///     }
///
///     fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
///         // An error for input that nobody can work with; `None` when this member is not listed.
///         match input.place()? {
///             Some(0) => Ok(Share::range(0..input.queues().len())),
///             _ => Ok(Share::none()),
///         }
///     }
/// }
///
/// let queues: Arc<[MessageQueue]> = (0..4).map(|id| MessageQueue::new("orders", "broker-a", id)).collect();
/// let members = Arc::new(Members::new(["10.0.0.2@71#1", "10.0.0.1@70#1"].map(Arc::from).to_vec()));
/// let share_of = |id: &str| AllocateInput::new("billing", id, &queues, &members).ask(&FirstTakesAll);
/// assert_eq!(share_of("10.0.0.1@70#1")?.len(), 4);
/// assert_eq!(share_of("10.0.0.2@71#1")?.len(), 0);
/// # Ok::<(), rocketmq_sync::Error>(())
/// ```
#[doc(alias = "org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy")]
pub trait AllocateMessageQueueStrategy: Send + Sync {
    /// The name by which members and tools know the strategy.
    fn name(&self) -> &str;

    /// The share of [`AllocateInput::current`].
    ///
    /// # Errors
    /// For input that the strategy cannot work with; the member then keeps what it holds.
    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share>;
}

impl<S: AllocateMessageQueueStrategy + ?Sized> AllocateMessageQueueStrategy for Arc<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        (**self).allocate(input)
    }
}

impl<S: AllocateMessageQueueStrategy + ?Sized> AllocateMessageQueueStrategy for Box<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        (**self).allocate(input)
    }
}
