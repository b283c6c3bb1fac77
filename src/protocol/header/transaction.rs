//! Transactions: how a half message ends, and the broker's question when it did not.

use crate::protocol::command_header::command_header;

command_header! {
    /// `END_TRANSACTION` (37), one way.
    pub struct EndTransactionRequestHeader<'a> {
        /// The producer group; it must equal the message's property `PGROUP`.
        pub producer_group: &'a str => "producerGroup",
        /// The queue offset of the half message.
        pub tran_state_table_offset: i64 => "tranStateTableOffset",
        /// The commit-log offset of the half message.
        pub commit_log_offset: i64 => "commitLogOffset",
        /// 8 commits, 12 rolls back, 0 leaves it open: bits of `MessageSysFlag`.
        pub commit_or_rollback: i32 => "commitOrRollback",
        /// Whether this answers a `CHECK_TRANSACTION_STATE`.
        pub from_transaction_check: bool => "fromTransactionCheck" = false,
        /// The unique key of the message.
        pub msg_id: &'a str => "msgId",
        /// The transaction id.
        pub transaction_id: Option<&'a str> => "transactionId",
        /// The topic (since 5.3.0).
        pub topic: Option<&'a str> => "topic",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}

command_header! {
    /// `CHECK_TRANSACTION_STATE` (39), one way, broker to producer; the message is in the body.
    pub struct CheckTransactionStateRequestHeader<'a> {
        /// The queue offset of the half message.
        pub tran_state_table_offset: i64 => "tranStateTableOffset",
        /// The commit-log offset of the half message.
        pub commit_log_offset: i64 => "commitLogOffset",
        /// The unique key of the message.
        pub msg_id: Option<&'a str> => "msgId",
        /// The transaction id.
        pub transaction_id: Option<&'a str> => "transactionId",
        /// The offset message id (since 4.3).
        pub offset_msg_id: Option<&'a str> => "offsetMsgId",
        /// The half topic (since 5.3.0).
        pub topic: Option<&'a str> => "topic",
        /// The name of the broker.
        pub bname: Option<&'a str> => "bname",
    }
}
