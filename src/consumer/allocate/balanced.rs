//! `BALANCED_STICKY`: even shares that a change of the membership moves little.
//!
//! # How
//! Each member ranks all queues by a hash of queue and member together. Members then claim queues in the order of their
//! ranking, all at the same pace; the first to claim a queue has it. A member that has its share claims no more. A share
//! is the average rounded down; the first members to claim a further queue get it, while the rest lasts.
//!
//! A newcomer takes, in place of others, the queues that it ranks higher than their owners did: its fair part of
//! everybody's. The others differ only in what they claim late, to make up for what they lost. How few those are rests
//! on two things, found by trying many variants on random groups (queues moved over the least possible, joins and leaves
//! summed over 8-200 queues and 2-50 members; averaging: 5.9):
//!
//! - Pace goes by place in the ranking, not by the value of the hash (1.75 by value, 1.64 by place): all members then
//!   make as many claims at each step, so that they fill up at the same time and few have to search the leftovers.
//! - After each queue that it gets, a member pauses for `members³ / (10 × queues)` steps. In a group with few queues for
//!   each member that makes them take turns; where there are many queues for each it is nothing. (1.62, and 1.97 instead
//!   of 2.11 as the mean over single changes, where small shares count most.)
//!
//! Neither better prices for queues and members, an exact optimum instead of first come first served, a vote over
//! neighbouring memberships, nor a treatment of its own for the last queues came below that.

use super::memo::Memo;
use super::routed::Routed;
use super::{AllocateInput, AllocateMessageQueueStrategy, Members, Share, hash};
use crate::error::Result;
use crate::message::MessageQueue;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fmt;

/// Even shares that a change moves little: every member holds the average, rounded down or up, and when a member joins
/// or leaves, about 1.6 times as many queues move as must (averaging: about 6 times).
///
/// Members agree without talking, as with every strategy: the shares follow from the queues and the client ids alone,
/// not from what was held before. That is also why the least possible is out of reach.
///
/// # Limits
/// - Every member of the group must use it, so all must be of this library; a member that averages instead leaves
///   queues unread and reads others twice.
/// - The factor is an average over 8-200 queues and 2-50 members; a single change may be above or below. It is 1.1 at
///   60 queues for each of 3 members, 1.4 at 16 for each of 10, and 2.2 at 4 or 5 for each of 40. With fewer queues than
///   members a change moves about one queue, where often none would have to.
/// - Which members hold one more than others is chosen for each topic apart, so that nobody has one more everywhere.
///   Equal queue numbers of two topics therefore do not go to the same member, as they do with averaging.
/// - A queue that is added or gone, as when a broker restarts, moves few others.
/// - Working it out takes queues × members steps, some 35 ms for 10,000 × 1,000, once for each change.
///
/// ```
/// use rocketmq_sync::{AllocateBalanced, AllocateInput, Members, MessageQueue};
/// use std::sync::Arc;
///
/// let balanced = AllocateBalanced::new();
/// let queues: Arc<[MessageQueue]> = (0..16).map(|id| MessageQueue::new("orders", "broker-a", id)).collect();
/// let members = Arc::new(Members::new((1..=3).map(|n| format!("10.0.0.{n}@70#{n}").into()).collect()));
/// for id in members.ids() {
///     let share = AllocateInput::new("billing", id, &queues, &members).ask(&balanced)?;
///     assert!(share.len() == 5 || share.len() == 6);
/// }
/// # Ok::<(), rocketmq_sync::Error>(())
/// ```
#[derive(Default)]
pub struct AllocateBalanced {
    memo: Memo<Routed>,
}

impl AllocateBalanced {
    /// The strategy has no settings: members could disagree about them.
    pub fn new() -> Self {
        Self::default()
    }
}

impl AllocateMessageQueueStrategy for AllocateBalanced {
    fn name(&self) -> &str {
        "BALANCED_STICKY"
    }

    fn allocate(&self, input: &AllocateInput<'_>) -> Result<Share> {
        let Some(place) = input.place()? else { return Ok(Share::none()) };
        let routed =
            self.memo.get_or_try(input.queues(), input.members(), || Ok(route(input.queues(), input.members())))?;
        Ok(routed.share(place))
    }
}

impl fmt::Debug for AllocateBalanced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocateBalanced").finish_non_exhaustive()
    }
}

fn route(queues: &[MessageQueue], members: &Members) -> Routed {
    let queue_hashes = hash::of_queues(queues);
    // An id that is listed twice is one member, under its first place.
    let (places, member_hashes): (Vec<u32>, Vec<u64>) = (0u32..)
        .zip(members.ids().iter().zip(members.hashes()))
        .filter(|(place, (id, _))| !members.has_duplicates() || members.index_of(id) == Some(*place as usize))
        .map(|(place, (_, hash))| (place, *hash))
        .unzip();
    let owners: Vec<u32> =
        share_out(&queue_hashes, &member_hashes).into_iter().map(|member| places[member as usize]).collect();
    Routed::new(members.len(), &owners)
}

/// The owner of each queue. Neither list is empty.
fn share_out(queues: &[u64], members: &[u64]) -> Vec<u32> {
    const NOBODY: u32 = u32::MAX;
    let (each, mut rest) = (queues.len() / members.len(), queues.len() % members.len());
    let pause = Pause::new(queues.len(), members.len());
    // Sorting whole rankings would cost more than the rest together. It takes about ln(queues) claims to get one; with
    // twice as many at hand few members need a second stretch.
    let stretch = (2 * (each as u64 + 1) * u64::from(queues.len().ilog2())).max(16);
    let mut claimants: Vec<Claimant> = members.iter().map(|hash| Claimant::new(*hash, queues, stretch)).collect();
    // Whose turn it is: by step, then by the hash of the claim, then by place.
    let mut turns: BinaryHeap<Reverse<(u64, u64, u32)>> = (0u32..)
        .zip(&claimants)
        .filter_map(|(member, claimant)| Some(Reverse((0, claimant.claim()?.0, member))))
        .collect();
    let mut owners = vec![NOBODY; queues.len()];
    let mut left = queues.len();
    // There is always somebody to claim what is left: a member with room that has claimed every queue was refused each
    // time, so that none is left.
    while left > 0 {
        let Some(mut turn) = turns.peek_mut() else { break };
        let member = turn.0.2;
        let claimant = &mut claimants[member as usize];
        let has_room = claimant.load < each || claimant.load == each && rest > 0;
        let Some((_, queue)) = claimant.claim().filter(|_| has_room) else {
            PeekMut::pop(turn);
            continue;
        };
        let owner = &mut owners[queue as usize];
        if *owner == NOBODY {
            *owner = member;
            rest -= usize::from(claimant.load == each);
            claimant.load += 1;
            claimant.paused = pause.after(claimant.load);
            left -= 1;
        }
        match claimant.advance(queues) {
            Some((hash, _)) => turn.0 = (claimant.rank + claimant.paused, hash, member),
            None => drop(PeekMut::pop(turn)),
        }
    }
    owners
}

/// How long members pause for what they have got.
struct Pause {
    members_cubed: u128,
    ten_queues: u128,
}

impl Pause {
    fn new(queues: usize, members: usize) -> Self {
        Self { members_cubed: (members as u128).pow(3), ten_queues: 10 * queues as u128 }
    }

    fn after(&self, load: usize) -> u64 {
        // A pause so long that it does not fit is as good as any: everybody with a lower load comes before its end.
        (load as u128 * self.members_cubed / self.ten_queues).min(u128::from(u64::MAX / 2)) as u64
    }
}

/// One member, on its way through its ranking of the queues.
struct Claimant {
    hash: u64,
    /// Steps taken: the place in the ranking of the next claim.
    rank: u64,
    load: usize,
    /// Steps that it has let pass, for what it has got.
    paused: u64,
    /// A stretch of the ranking: hash and index of queues, in order.
    stretch: Vec<(u64, u32)>,
    /// The next claim in `stretch`.
    next: usize,
    /// Where in the range of hashes the stretch after this one starts; `None` when this is the last.
    then: Option<u64>,
    /// About so many queues come with the next stretch.
    size: u64,
}

impl Claimant {
    fn new(hash: u64, queues: &[u64], size: u64) -> Self {
        let mut claimant =
            Self { hash, rank: 0, load: 0, paused: 0, stretch: Vec::new(), next: 0, then: Some(0), size };
        claimant.refill(queues);
        claimant
    }

    /// The next claim.
    fn claim(&self) -> Option<(u64, u32)> {
        self.stretch.get(self.next).copied()
    }

    /// One step on.
    fn advance(&mut self, queues: &[u64]) -> Option<(u64, u32)> {
        self.rank += 1;
        self.next += 1;
        if self.next == self.stretch.len() {
            self.refill(queues);
        }
        self.claim()
    }

    fn refill(&mut self, queues: &[u64]) {
        self.stretch.clear();
        self.next = 0;
        while let Some(from) = self.then
            && self.stretch.is_empty()
        {
            let width = (u64::MAX / queues.len() as u64).saturating_mul(self.size);
            let to = from.checked_add(width).filter(|_| self.size < queues.len() as u64);
            let pairs = queues.iter().zip(0u32..).map(|(queue, index)| (hash::of_pair(*queue, self.hash), index));
            self.stretch.extend(pairs.filter(|(hash, _)| *hash >= from && to.is_none_or(|to| *hash < to)));
            self.stretch.sort_unstable();
            self.then = to;
            self.size = self.size.saturating_mul(4);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(count: usize, salt: u64) -> Vec<u64> {
        (0..count as u64).map(|n| hash::of_pair(n, salt)).collect()
    }

    #[test]
    fn a_ranking_read_in_stretches_is_the_whole_ranking_in_order() {
        for count in [1, 255, 256, 257, 3_000] {
            let queues = hashes(count, 1);
            let mut claimant = Claimant::new(77, &queues, 16);
            let mut ranking = Vec::new();
            let mut claim = claimant.claim();
            while let Some(found) = claim {
                ranking.push(found);
                claim = claimant.advance(&queues);
            }
            let mut expected: Vec<_> =
                queues.iter().zip(0u32..).map(|(queue, index)| (hash::of_pair(*queue, 77), index)).collect();
            expected.sort_unstable();
            assert_eq!(ranking, expected);
            assert_eq!(claimant.rank, count as u64);
        }
    }

    #[test]
    fn everybody_gets_the_average_rounded_down_or_up() {
        for (queues, members) in [(1, 1), (1, 9), (9, 1), (7, 7), (50, 7), (3_000, 40), (40, 3_000)] {
            let mut loads = vec![0; members];
            for owner in share_out(&hashes(queues, 2), &hashes(members, 3)) {
                loads[owner as usize] += 1;
            }
            let each = queues / members;
            assert!(loads.iter().all(|load| *load == each || *load == each + 1), "{queues} {members} {loads:?}");
        }
    }

    #[test]
    fn queues_with_equal_hashes_are_told_apart_by_index() {
        let owners = share_out(&[5; 12], &[1, 2, 3]);
        for member in 0..3 {
            assert_eq!(owners.iter().filter(|owner| **owner == member).count(), 4);
        }
    }
}
