//! What a test does to a running [`EmbeddedCluster`] beside stopping and starting its parts: faults, pauses, members that
//! are forgotten.

use super::EmbeddedCluster;
use super::broker::Broker;
use super::fault::{Fault, InjectedFault};
use crate::error::{Error, ErrorKind, Result};
use std::net::SocketAddr;

impl EmbeddedCluster {
    /// From now on this goes wrong; see [`Fault`] for an example.
    pub fn inject(&self, fault: Fault) -> InjectedFault {
        self.faults.inject(fault)
    }

    /// Ends all faults.
    pub fn clear_faults(&self) {
        self.faults.clear();
    }

    /// Lets a broker's master stand still, as a process that was stopped by a signal: its connections stay open and new ones can
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

    /// The address of a slave, whose id is 1 or more; it stays the same when the slave is restarted.
    pub fn slave_address(&self, broker: &str, id: usize) -> Option<SocketAddr> {
        self.slave(broker, id).ok().map(|broker| broker.address(id))
    }

    /// Stops a slave: its connections close, the name server forgets it, and who was a member there is lost. Its offsets
    /// stay.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when there is no such slave.
    pub fn stop_slave(&self, broker: &str, id: usize) -> Result<()> {
        self.slave(broker, id)?.stop(id);
        Ok(())
    }

    /// Starts a stopped slave again on its old port, or stops and starts a running one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when there is no such slave,
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) when somebody took its port.
    pub fn restart_slave(&self, broker: &str, id: usize) -> Result<()> {
        let broker = self.slave(broker, id)?;
        broker.stop(id);
        broker.start(id)
    }

    /// The broker of a slave that exists.
    fn slave(&self, broker: &str, id: usize) -> Result<&Broker> {
        let found = self.broker(broker)?;
        if (1..found.servers()).contains(&id) {
            return Ok(found);
        }
        let text = format!("embedded broker '{broker}' has no slave {id}, but {} of them", found.servers() - 1);
        Err(Error::new(ErrorKind::Config, text))
    }

    /// All brokers forget that a client is a member of a consumer group, and tell nobody. Its next heartbeat makes it
    /// one again. Returns how many memberships were forgotten, one for each connection.
    pub fn forget_member(&self, group: &str, client_id: &str) -> usize {
        self.brokers.iter().map(|broker| Broker::forget_member(broker, group, client_id)).sum()
    }
}
