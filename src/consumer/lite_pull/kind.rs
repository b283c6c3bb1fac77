//! What a lite pull consumer does in its own way as a member of its group: messages go to the buffer, and offsets are
//! stored once they are committed.

use super::buffer::Admission;
use super::core::{Core, Mode};
use crate::consumer::held::HeldQueue;
use crate::consumer::member::{Kind, Member, STORE_TIME};
use crate::message::MessageExt;
use crate::protocol::body::{ConsumeType, ConsumerRunningInfo};
use crate::time::Deadline;
use std::sync::Arc;
use std::time::Duration;

impl Kind for Core {
    fn member(&self) -> &Member {
        &self.member
    }

    fn consume_type(&self) -> ConsumeType {
        ConsumeType::Actively
    }

    fn shares_queues(&self) -> bool {
        self.mode() == Some(Mode::Subscribe)
    }

    fn take_over(&self, coming: Vec<Arc<HeldQueue>>, delay: Duration) {
        for held in coming {
            self.submit(self.buffer.open(held.clone()));
            self.member.locate_after(held, delay);
        }
    }

    fn admit(&self, held: &Arc<HeldQueue>) -> bool {
        match self.buffer.admit(held) {
            Admission::Go => return true,
            Admission::Rest(why) => held.with_progress(|progress| progress.standing = Some(why.into())),
            Admission::Over => {}
        }
        false
    }

    fn is_resting(&self, held: &HeldQueue) -> bool {
        self.buffer.cached(held).2
    }

    fn carries(&self) -> (bool, bool) {
        // What is committed is sent by itself, when it is committed.
        (true, false)
    }

    fn take_in(&self, held: &Arc<HeldQueue>, messages: Vec<MessageExt>, next: i64, _: Duration) -> bool {
        self.buffer.take_in(held, messages, next)
    }

    fn pass_over(&self, held: &HeldQueue, next: i64) {
        self.buffer.take_in(held, Vec::new(), next);
    }

    fn restart_at(&self, held: &Arc<HeldQueue>, offset: i64) -> Option<Arc<HeldQueue>> {
        let next = self.member.renew_at(held, offset)?;
        self.submit(self.buffer.open(next.clone()));
        self.member.submit_corrected(&next);
        Some(next)
    }

    fn were_reset(&self, queues: &[Arc<HeldQueue>]) {
        // Stored at once, also without auto commit: the operator meant the group, and an older commit may be under way.
        self.buffer.commit(queues);
        self.member.store(queues, Deadline::after(STORE_TIME));
    }

    fn unfinished_from(&self, held: &HeldQueue) -> Option<i64> {
        self.buffer.handled(held)
    }

    fn settle(&self, queues: &[Arc<HeldQueue>]) {
        if self.config.auto_commit {
            self.buffer.commit(queues);
        }
    }

    fn may_store(&self, held: &HeldQueue) -> bool {
        // Without a commit an ownership says nothing about the group, its start offset neither.
        self.buffer.is_committed(held)
    }

    fn forget(&self, held: &HeldQueue) {
        self.submit(self.buffer.forget(held));
    }

    fn end_jobs(&self) {
        self.commit_job.stop();
        self.topics.stop();
    }

    fn finish(&self, held: &[Arc<HeldQueue>], deadline: Deadline) -> usize {
        self.buffer.close();
        if self.config.auto_commit {
            // A caller that unwinds did not get to the end of what it polled.
            if !std::thread::panicking() {
                self.buffer.settle_mine();
            }
            self.buffer.wait_settled(deadline);
            self.buffer.commit(held);
        }
        self.buffer.in_hand(held)
    }

    fn persist(&self, deadline: Deadline) {
        // With auto commit its own job does it.
        if !self.config.auto_commit {
            self.buffer.find_ended();
            self.member.store(&self.member.held.all(), deadline);
        }
    }

    fn describe(&self, _: bool) -> ConsumerRunningInfo {
        self.running_info()
    }

    fn consumed(&self) -> u64 {
        self.buffer.counts().handled
    }
}
