//! Owners of queues, turned round: the queues of each member.

use super::Share;
use std::sync::Arc;

/// No member owns the queue.
pub(super) const NOBODY: u32 = u32::MAX;

/// The shares of all members, side by side in one list.
pub(super) struct Routed {
    /// Where in `order` the share of each member starts; the next one's start is its end.
    starts: Box<[u32]>,
    order: Arc<[u32]>,
}

impl Routed {
    /// `owners` names a member, or [`NOBODY`], for each queue.
    pub(super) fn new(members: usize, owners: &[u32]) -> Self {
        // A counting sort: it keeps the order of the queues within a share.
        let mut starts = vec![0u32; members + 1].into_boxed_slice();
        for owner in owners.iter().filter(|owner| **owner != NOBODY) {
            starts[*owner as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut order = vec![0u32; sum as usize];
        for (queue, owner) in owners.iter().enumerate().filter(|(_, owner)| **owner != NOBODY) {
            order[next[*owner as usize] as usize] = queue as u32;
            next[*owner as usize] += 1;
        }
        Self { starts, order: order.into() }
    }

    /// The share of a member.
    #[inline]
    pub(super) fn share(&self, member: usize) -> Share {
        Share::listed(self.order.clone(), self.starts[member]..self.starts[member + 1], None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_each_member_its_queues_in_order() {
        let routed = Routed::new(4, &[2, 0, NOBODY, 2, 0, 2, 3]);
        let shares: Vec<Vec<usize>> =
            (0..4).map(|member| (0..7).map_while(|nth| routed.share(member).index(nth)).collect()).collect();
        assert_eq!(shares, [vec![1, 4], vec![], vec![0, 3, 5], vec![6]]);
    }
}
