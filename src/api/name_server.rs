//! The one question a client has for a name server.

use super::Api;
use crate::error::Result;
use crate::protocol::RequestCode;
use crate::protocol::body::TopicRouteData;
use crate::protocol::header::GetRouteInfoRequestHeader;
use std::sync::Arc;
use std::time::Duration;

impl Api {
    /// `GET_ROUTEINFO_BY_TOPIC`; code 17 when the topic is not known there.
    pub(crate) fn topic_route(&self, address: &Arc<str>, topic: &str, timeout: Duration) -> Result<TopicRouteData> {
        let header = GetRouteInfoRequestHeader { topic, accept_standard_json_only: Some(true) };
        let answer = self.call(address, self.request(RequestCode::GET_ROUTEINFO_BY_TOPIC, &header), timeout)?;
        TopicRouteData::decode(&answer.body).map_err(|error| error.with_address(&**address))
    }
}
