//! What a strategy makes of queues and members, now and after each change of the membership.

use crate::failure::Failure;
use rocketmq_sync::{AllocateInput, AllocateMessageQueueStrategy, Members, MessageQueue};
use std::sync::Arc;

/// The owner of each queue, or nobody.
pub type Owners = Vec<Option<Arc<str>>>;

/// How one topic is shared out by one strategy.
pub struct Plan {
    pub strategy: String,
    pub queues: Arc<[MessageQueue]>,
    pub members: Vec<Arc<str>>,
    pub now: Owners,
    /// One member joins; then, each by itself, every member leaves.
    pub changes: Vec<Change>,
}

/// A change of the membership.
pub struct Change {
    pub id: Arc<str>,
    pub joins: bool,
    pub owners: Owners,
    /// Queues that change their owner.
    pub moved: usize,
    /// Of those: the ones that go to the newcomer, or that the leaver had.
    pub own: usize,
}

impl Plan {
    pub fn new(
        strategy: &dyn AllocateMessageQueueStrategy,
        mut queues: Vec<MessageQueue>,
        members: &[String],
        newcomer: &str,
    ) -> Result<Self, Failure> {
        queues.sort();
        let queues: Arc<[MessageQueue]> = queues.into();
        let ids = |ids: &mut dyn Iterator<Item = &str>| Arc::new(Members::new(ids.map(Arc::from).collect()));
        let all = || members.iter().map(String::as_str);
        let present = ids(&mut all());
        let now = owners(strategy, &queues, &present)?;
        let mut changes = Vec::new();
        let joined = ids(&mut all().chain([newcomer]));
        changes.push(change(newcomer.into(), true, &now, owners(strategy, &queues, &joined)?));
        for id in present.ids().iter().filter(|_| present.len() > 1) {
            let left = ids(&mut all().filter(|other| *other != &**id));
            changes.push(change(id.clone(), false, &now, owners(strategy, &queues, &left)?));
        }
        Ok(Self { strategy: strategy.name().to_owned(), queues, members: present.ids().to_vec(), now, changes })
    }

    /// What is shared out, by which strategy, among how many.
    pub fn title(&self) -> String {
        let topic = self.queues.first().map_or("", MessageQueue::topic);
        let members = if self.members.len() == 1 { "member" } else { "members" };
        format!("{}: topic {topic}, {} queues, {} {members}", self.strategy, self.queues.len(), self.members.len())
    }

    /// The indexes of a member's queues.
    pub fn share(&self, id: &Arc<str>) -> Vec<usize> {
        (0..self.queues.len()).filter(|index| self.now[*index].as_ref() == Some(id)).collect()
    }
}

fn owners(
    strategy: &dyn AllocateMessageQueueStrategy,
    queues: &Arc<[MessageQueue]>,
    members: &Arc<Members>,
) -> Result<Owners, Failure> {
    let mut owners = vec![None; queues.len()];
    for id in members.ids() {
        let share = AllocateInput::new("mqcat", id, queues, members).ask(strategy)?;
        (0..share.len()).filter_map(|nth| share.index(nth)).for_each(|index| owners[index] = Some(id.clone()));
    }
    Ok(owners)
}

fn change(id: Arc<str>, joins: bool, before: &Owners, after: Owners) -> Change {
    let mut change = Change { id, joins, owners: Vec::new(), moved: 0, own: 0 };
    for (before, after) in before.iter().zip(&after).filter(|(before, after)| before != after) {
        change.moved += 1;
        let whose = if joins { after } else { before };
        change.own += usize::from(whose.as_ref() == Some(&change.id));
    }
    Change { owners: after, ..change }
}
