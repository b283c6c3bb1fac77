//! Allocation strategies by their wire names.

use crate::failure::Failure;
use rocketmq_sync::{
    AllocateAveragely, AllocateAveragelyByCircle, AllocateBalanced, AllocateConsistentHash,
    AllocateMessageQueueStrategy,
};

/// The names of those that need no settings.
pub const NAMES: [&str; 4] = ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "BALANCED_STICKY"];

/// The strategy that `--strategy` names.
pub fn named(name: &str) -> Result<Box<dyn AllocateMessageQueueStrategy>, Failure> {
    match name {
        "AVG" => Ok(Box::new(AllocateAveragely)),
        "AVG_BY_CIRCLE" => Ok(Box::new(AllocateAveragelyByCircle)),
        "CONSISTENT_HASH" => Ok(Box::new(AllocateConsistentHash::new())),
        "BALANCED_STICKY" => Ok(Box::new(AllocateBalanced::new())),
        other => {
            let why = if other == "CONFIG" || other.starts_with("MACHINE_ROOM") {
                "needs settings that no option carries"
            } else {
                "is no allocation strategy"
            };
            Err(Failure::option("strategy", format!("{other:?} {why}; use one of {}", NAMES.join(", "))))
        }
    }
}
