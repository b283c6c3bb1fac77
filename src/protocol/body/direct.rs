//! The outcome of a message that was consumed on demand.

use crate::protocol::body::json_body;
use crate::protocol::body::open_enum::open_enum;
use serde::{Deserialize, Serialize};

open_enum! {
    /// What the listener said.
    #[doc(alias = "org.apache.rocketmq.remoting.protocol.body.CMResult")]
    pub enum ConsumeResult {
        /// Consumed.
        Success = "CR_SUCCESS",
        /// To be consumed again later.
        Later = "CR_LATER",
        /// Orderly with explicit commits: rolled back.
        Rollback = "CR_ROLLBACK",
        /// Orderly with explicit commits: committed.
        Commit = "CR_COMMIT",
        /// The listener failed.
        ThrowException = "CR_THROW_EXCEPTION",
        /// The listener gave no answer.
        ReturnNull = "CR_RETURN_NULL",
    }
}

/// Answer to `CONSUME_MESSAGE_DIRECTLY`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConsumeMessageDirectlyResult {
    /// Whether the listener commits by itself.
    pub auto_commit: bool,
    /// What it said.
    pub consume_result: ConsumeResult,
    /// Whether it is an orderly one.
    pub order: bool,
    /// Text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// How long it took, in milliseconds.
    pub spent_time_mills: i64,
}

impl Default for ConsumeMessageDirectlyResult {
    fn default() -> Self {
        let consume_result = ConsumeResult::Unknown;
        Self { auto_commit: true, consume_result, order: false, remark: None, spent_time_mills: 0 }
    }
}

json_body!(ConsumeMessageDirectlyResult);
