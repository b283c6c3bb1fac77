//! What became of a message.

use crate::message::MessageQueue;
use crate::protocol::ResponseCode;

/// How safely the broker stored the message. In each case it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStatus {
    /// As asked for.
    SendOk,
    /// In memory; the disk did not confirm in time (only brokers that flush before they answer).
    FlushDiskTimeout,
    /// On the master; the replica did not confirm in time.
    FlushSlaveTimeout,
    /// On the master; there is no replica.
    SlaveNotAvailable,
}

impl SendStatus {
    pub(crate) fn from_code(code: ResponseCode) -> Self {
        match code {
            ResponseCode::FLUSH_DISK_TIMEOUT => Self::FlushDiskTimeout,
            ResponseCode::FLUSH_SLAVE_TIMEOUT => Self::FlushSlaveTimeout,
            ResponseCode::SLAVE_NOT_AVAILABLE => Self::SlaveNotAvailable,
            _ => Self::SendOk,
        }
    }
}

/// Where a message is and what its ids are.
#[derive(Debug, Clone)]
pub struct SendResult {
    pub(crate) status: SendStatus,
    pub(crate) msg_id: String,
    pub(crate) offset_msg_id: String,
    pub(crate) message_queue: MessageQueue,
    pub(crate) queue_offset: i64,
    pub(crate) transaction_id: Option<String>,
    pub(crate) region_id: Option<String>,
}

impl SendResult {
    /// How safely it is stored.
    pub fn status(&self) -> SendStatus {
        self.status
    }

    /// The unique key made by this client; consumers see it as the message's id. For a batch, one for each message,
    /// joined by commas.
    pub fn msg_id(&self) -> &str {
        &self.msg_id
    }

    /// The id made by the broker: its address and the place in its log.
    pub fn offset_msg_id(&self) -> &str {
        &self.offset_msg_id
    }

    /// The queue that holds it.
    pub fn message_queue(&self) -> &MessageQueue {
        &self.message_queue
    }

    /// Its place in the queue; for a batch, that of the first message. A message with a delay waits in another queue
    /// first, and this is its place there.
    pub fn queue_offset(&self) -> i64 {
        self.queue_offset
    }

    /// The broker's transaction id, when it gave one.
    pub fn transaction_id(&self) -> Option<&str> {
        self.transaction_id.as_deref()
    }

    /// The broker's region, when it gave one.
    pub fn region_id(&self) -> Option<&str> {
        self.region_id.as_deref()
    }
}
