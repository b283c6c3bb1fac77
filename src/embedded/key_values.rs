//! PUT_KV_CONFIG (100), GET_KV_CONFIG (101), DELETE_KV_CONFIG (102), GET_KVLIST_BY_NAMESPACE (219).
//!
//! Kept from a real name server: text by name space and key; 22 for what is not there; the name space
//! `ORDER_TOPIC_CONFIG` goes to brokers that register. They outlive a restart of the name server. Left out: the file.
//! Bounded, where upstream is not.

use crate::error::Result;
use crate::protocol::body::KVTable;
use crate::protocol::header::{
    DeleteKVConfigRequestHeader, GetKVConfigRequestHeader, GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader, PutKVConfigRequestHeader,
};
use crate::protocol::{RemotingCommand, ResponseCode};
use crate::sync::{Mutex, Rank};
use std::collections::BTreeMap;

/// Most bytes of all names and values.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// The values of all name spaces.
#[derive(Debug)]
pub(crate) struct KeyValues {
    spaces: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
}

impl KeyValues {
    pub(crate) fn new() -> Self {
        Self { spaces: Mutex::new(Rank::Leaf, BTreeMap::new()) }
    }

    /// All of a name space, or `None` when there is nothing.
    pub(crate) fn list(&self, namespace: &str) -> Option<KVTable> {
        let table = self.spaces.lock().get(namespace).filter(|table| !table.is_empty())?.clone();
        Some(KVTable { table })
    }

    pub(crate) fn put(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: PutKVConfigRequestHeader<'_> = request.header()?;
        let mut spaces = self.spaces.lock();
        let size =
            |table: &BTreeMap<String, String>| table.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let held: usize = spaces.iter().map(|(name, table)| name.len() + size(table)).sum();
        if held + header.namespace.len() + header.key.len() + header.value.len() > MOST_BYTES {
            let remark = format!("there is no room for more than {MOST_BYTES} bytes of values");
            return Ok(RemotingCommand::response(ResponseCode::SYSTEM_ERROR, Some(remark)));
        }
        spaces.entry(header.namespace.into()).or_default().insert(header.key.into(), header.value.into());
        Ok(RemotingCommand::response(ResponseCode::SUCCESS, None))
    }

    pub(crate) fn get(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: GetKVConfigRequestHeader<'_> = request.header()?;
        let spaces = self.spaces.lock();
        let Some(value) = spaces.get(header.namespace).and_then(|table| table.get(header.key)) else {
            return Ok(not_found(header.namespace, header.key));
        };
        let answer = GetKVConfigResponseHeader { value: Some(value) };
        Ok(RemotingCommand::response_with(ResponseCode::SUCCESS, &answer))
    }

    pub(crate) fn delete(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: DeleteKVConfigRequestHeader<'_> = request.header()?;
        let mut spaces = self.spaces.lock();
        if let Some(table) = spaces.get_mut(header.namespace) {
            table.remove(header.key);
            if table.is_empty() {
                spaces.remove(header.namespace);
            }
        }
        Ok(RemotingCommand::response(ResponseCode::SUCCESS, None))
    }

    pub(crate) fn list_of(&self, request: &RemotingCommand) -> Result<RemotingCommand> {
        let header: GetKVListByNamespaceRequestHeader<'_> = request.header()?;
        Ok(match self.list(header.namespace) {
            Some(table) => RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(table.encode()),
            None => not_found(header.namespace, "any"),
        })
    }
}

fn not_found(namespace: &str, key: &str) -> RemotingCommand {
    let remark = format!("No config item, Namespace: {namespace:.100} Key: {key:.100}");
    RemotingCommand::response(ResponseCode::QUERY_NOT_FOUND, Some(remark))
}
