//! What a broker is told when it is made.

use super::schedule::DelayLevels;
use super::store::Limits;
use super::transaction::TransactionLimits;
use crate::remoting::RemotingConfig;
use crate::time::Clock;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Settings of one embedded broker; they do not change while it exists.
#[derive(Debug, Clone)]
pub(crate) struct BrokerConfig {
    pub(crate) name: Arc<str>,
    pub(crate) cluster: Arc<str>,
    /// How many slaves it has.
    pub(crate) slaves: usize,
    /// Whether slaves may be read from.
    pub(crate) slave_read: bool,
    pub(crate) bind: IpAddr,
    /// The address that clients are told.
    pub(crate) advertise: IpAddr,
    pub(crate) delay_levels: DelayLevels,
    /// How far ahead a timer message may be.
    pub(crate) timer_max_delay: Duration,
    pub(crate) transactions: TransactionLimits,
    pub(crate) auto_create_topics: bool,
    /// Whether conditions over properties are allowed.
    pub(crate) property_filter: bool,
    pub(crate) limits: Limits,
    pub(crate) max_topics: usize,
    pub(crate) max_groups: usize,
    pub(crate) remoting: RemotingConfig,
    pub(crate) clock: Clock,
}

/// Largest body of a message.
pub(crate) const MAX_MESSAGE_SIZE: usize = 4 * 1024 * 1024;
/// The region that every message and every answer to a send carries.
pub(crate) const REGION: &str = "DefaultRegion";
