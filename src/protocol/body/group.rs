//! The members of a group.

use crate::protocol::body::json_body;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Answer to `GET_CONSUMER_LIST_BY_GROUP`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GetConsumerListByGroupResponseBody {
    /// The client ids, in no order.
    pub consumer_id_list: Vec<Arc<str>>,
}

json_body!(GetConsumerListByGroupResponseBody);
