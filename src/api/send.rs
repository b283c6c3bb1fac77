//! Sending messages, and sending one back.

use super::{Api, refused};
use crate::error::Result;
use crate::protocol::header::{ConsumerSendMsgBackRequestHeader, SendMessageRequestHeader, SendMessageResponseHeader};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// A stored message, as the broker names it. The code tells how safely it is stored.
#[derive(Debug)]
pub(crate) struct SendAnswer {
    pub(crate) code: ResponseCode,
    pub(crate) offset_msg_id: String,
    pub(crate) queue_id: i32,
    pub(crate) queue_offset: i64,
    pub(crate) transaction_id: Option<String>,
    pub(crate) region_id: Option<String>,
}

impl Api {
    /// `SEND_MESSAGE_V2`, or `SEND_BATCH_MESSAGE` when the header says batch.
    pub(crate) fn send(
        &self,
        address: &Arc<str>,
        header: &SendMessageRequestHeader<'_>,
        body: Bytes,
        timeout: Duration,
    ) -> Result<SendAnswer> {
        let answer = self.remoting.invoke(address, self.send_request(header, body), timeout)?;
        match answer.response_code() {
            ResponseCode::SUCCESS
            | ResponseCode::FLUSH_DISK_TIMEOUT
            | ResponseCode::FLUSH_SLAVE_TIMEOUT
            | ResponseCode::SLAVE_NOT_AVAILABLE => read_answer(&answer).map_err(|error| error.with_address(&**address)),
            _ => Err(refused(answer, address)),
        }
    }

    /// As [`send`](Self::send), without an answer: success only means that the request was handed to the connection.
    pub(crate) fn send_oneway(
        &self,
        address: &Arc<str>,
        header: &SendMessageRequestHeader<'_>,
        body: Bytes,
    ) -> Result<()> {
        self.remoting.invoke_oneway(address, self.send_request(header, body).oneway())
    }

    fn send_request(&self, header: &SendMessageRequestHeader<'_>, body: Bytes) -> RemotingCommand {
        let batch = header.batch == Some(true);
        let code = if batch { RequestCode::SEND_BATCH_MESSAGE } else { RequestCode::SEND_MESSAGE_V2 };
        self.request(code, header).with_body(body)
    }

    /// `CONSUMER_SEND_MSG_BACK`: the broker stores a copy to be consumed again, or a dead letter.
    pub(crate) fn send_back(
        &self,
        address: &Arc<str>,
        header: &ConsumerSendMsgBackRequestHeader<'_>,
        timeout: Duration,
    ) -> Result<()> {
        self.call(address, self.request(RequestCode::CONSUMER_SEND_MSG_BACK, header), timeout).map(|_| ())
    }
}

fn read_answer(answer: &RemotingCommand) -> Result<SendAnswer> {
    let header: SendMessageResponseHeader<'_> = answer.header()?;
    Ok(SendAnswer {
        code: answer.response_code(),
        offset_msg_id: header.msg_id.to_owned(),
        queue_id: header.queue_id,
        queue_offset: header.queue_offset,
        transaction_id: header.transaction_id.map(str::to_owned),
        region_id: header.msg_region.map(str::to_owned),
    })
}
