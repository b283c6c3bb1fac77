//! Whether the members of a group share the messages.

use crate::config::Item;
use crate::protocol::body;

/// Whether the members of a group share the messages, or each gets all of them. All members must use the same.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel")]
pub enum MessageModel {
    /// They share them (default). Brokers keep the group's offsets, and failed messages come again through them.
    #[default]
    Clustering,
    /// Each gets all of them. Each keeps its own offsets in a file, and failed messages come again to the member that
    /// failed them.
    Broadcasting,
}

impl MessageModel {
    pub(crate) fn on_the_wire(self) -> body::MessageModel {
        match self {
            Self::Clustering => body::MessageModel::Clustering,
            Self::Broadcasting => body::MessageModel::Broadcasting,
        }
    }
}

impl Item for MessageModel {
    fn from_text(text: &str) -> Result<Self, &'static str> {
        match text.trim() {
            "clustering" | "CLUSTERING" => Ok(Self::Clustering),
            "broadcasting" | "BROADCASTING" => Ok(Self::Broadcasting),
            _ => Err("is neither clustering nor broadcasting"),
        }
    }
}
