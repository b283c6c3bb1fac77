//! `PULL_MESSAGE`. Four codes are answers with offsets; every other one is an error.

use super::{Api, refused};
use crate::error::Result;
use crate::protocol::header::{PullMessageRequestHeader, PullMessageResponseHeader};
use crate::protocol::{RemotingCommand, RequestCode, ResponseCode};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// What a pull came to. Names: `PullStatus` of the Java client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullStatus {
    Found,
    NoNewMsg,
    NoMatchedMsg,
    OffsetIllegal,
}

/// An answer to a pull, the stored messages still as they came.
#[derive(Debug)]
pub(crate) struct PullResult {
    pub(crate) status: PullStatus,
    pub(crate) next_begin_offset: i64,
    pub(crate) min_offset: i64,
    pub(crate) max_offset: i64,
    pub(crate) suggest_which_broker_id: i64,
    pub(crate) offset_delta: i64,
    pub(crate) body: Bytes,
}

impl Api {
    pub(crate) fn pull(
        &self,
        address: &Arc<str>,
        header: &PullMessageRequestHeader<'_>,
        timeout: Duration,
        done: impl FnOnce(Result<PullResult>) + Send + 'static,
    ) {
        let request = self.request(RequestCode::PULL_MESSAGE, header);
        let target = address.clone();
        self.remoting.invoke_async(address, request, timeout, move |answer| {
            done(answer.and_then(|answer| read_answer(answer, &target)));
        });
    }
}

fn read_answer(answer: RemotingCommand, address: &Arc<str>) -> Result<PullResult> {
    let status = match answer.response_code() {
        ResponseCode::SUCCESS => PullStatus::Found,
        ResponseCode::PULL_NOT_FOUND => PullStatus::NoNewMsg,
        ResponseCode::PULL_RETRY_IMMEDIATELY => PullStatus::NoMatchedMsg,
        ResponseCode::PULL_OFFSET_MOVED => PullStatus::OffsetIllegal,
        _ => return Err(refused(answer, address)),
    };
    let header: PullMessageResponseHeader = answer.header().map_err(|error| error.with_address(&**address))?;
    Ok(PullResult {
        status,
        next_begin_offset: header.next_begin_offset,
        min_offset: header.min_offset,
        max_offset: header.max_offset,
        suggest_which_broker_id: header.suggest_which_broker_id,
        offset_delta: header.offset_delta.unwrap_or(0),
        body: answer.body,
    })
}
