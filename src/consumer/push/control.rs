//! Suspending and resuming at run time.

use super::core::Core;
use crate::consumer::suspension::Scope;

impl Core {
    pub(super) fn set_suspended(&self, scope: Scope<'_>, is_suspended: bool) {
        log::info!("group '{}': {scope:?} {}", self.member.group, if is_suspended { "suspended" } else { "resumed" });
        for held in self.member.held.set_suspended(scope, is_suspended) {
            self.service.go_on(&held);
            // The one ticket of the queue: parked, or in the answer of a pull that makes the next one itself.
            if held.process().is_some_and(|process| process.unpark()) {
                self.member.instance.submit_pull(held.ticket());
            }
        }
    }
}
