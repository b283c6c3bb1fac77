//! What a test does to a running [`EmbeddedCluster`] beside stopping and starting its parts: faults, pauses, members that
//! are forgotten.

use super::EmbeddedCluster;
use super::broker::Broker;
use super::fault::{Fault, InjectedFault};
use crate::error::Result;

impl EmbeddedCluster {
    /// From now on this goes wrong; see [`Fault`] for an example.
    pub fn inject(&self, fault: Fault) -> InjectedFault {
        self.faults.inject(fault)
    }

    /// Ends all faults.
    pub fn clear_faults(&self) {
        self.faults.clear();
    }

    /// Lets a broker stand still, as a process that was stopped by a signal: its connections stay open and new ones can
    /// be made, but it reads, answers and does nothing until [`resume_broker`](Self::resume_broker), a stop or a restart.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when there is no broker of this name.
    pub fn pause_broker(&self, name: &str) -> Result<()> {
        self.broker(name)?.pause(true);
        Ok(())
    }

    /// Lets a paused broker go on, with all that came meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when there is no broker of this name.
    pub fn resume_broker(&self, name: &str) -> Result<()> {
        self.broker(name)?.pause(false);
        Ok(())
    }

    /// All brokers forget that a client is a member of a consumer group, and tell nobody. Its next heartbeat makes it
    /// one again. Returns how many memberships were forgotten, one for each connection.
    pub fn forget_member(&self, group: &str, client_id: &str) -> usize {
        self.brokers.iter().map(|broker| Broker::forget_member(broker, group, client_id)).sum()
    }
}
