//! The JSON bodies.
//!
//! Reading is tolerant: members it does not know are ignored, members that are absent or null have their default, names
//! of newer constants become `Unknown`, and both of fastjson's deviations are taken. Writing is strict JSON, except that
//! bodies keyed by queues have bare objects as keys, since older Java peers read nothing else there.

mod assignment;
mod cluster;
mod config;
mod connection;
mod direct;
mod group;
mod heartbeat;
mod lock;
mod offset_table;
mod open_enum;
mod queue_keys;
mod register;
mod route;
mod running_info;
mod stats;

pub use assignment::*;
pub use cluster::*;
pub use config::*;
pub use connection::*;
pub use direct::*;
pub use group::*;
pub use heartbeat::*;
pub use lock::*;
pub use offset_table::*;
pub use register::*;
pub use route::*;
pub use running_info::*;
pub use stats::*;

use crate::base::fastjson;
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Gives bodies their `decode` and `encode`. With `bare keys` in front, keys that are queues are written as objects.
macro_rules! json_body {
    (@both $name:ty, $encode:path) => {
        impl $name {
            /// Reads the body.
            ///
            /// # Errors
            /// [`ErrorKind::Protocol`](crate::ErrorKind::Protocol) when it is no JSON of this shape.
            pub fn decode(body: &[u8]) -> $crate::error::Result<Self> {
                $crate::protocol::body::decode(stringify!($name), body)
            }

            /// Writes the body.
            pub fn encode(&self) -> bytes::Bytes {
                $encode(self)
            }
        }
    };
    (bare keys: $($name:ty),+) => { $(json_body! { @both $name, $crate::protocol::body::encode_bare_keys })+ };
    ($($name:ty),+) => { $(json_body! { @both $name, $crate::protocol::body::encode })+ };
}

pub(crate) use json_body;

/// Reads a body of the type that errors are to call `name`.
pub(crate) fn decode<T: DeserializeOwned>(name: &str, body: &[u8]) -> Result<T> {
    // `serde` would take a list for an object, by position.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(malformed(name, body, serde::de::Error::custom("it is no JSON object")));
    }
    let text = fastjson::normalise(body);
    if !has_references(&text)
        && let Ok(decoded) = serde_json::from_slice(&text)
    {
        return Ok(decoded);
    }
    // Either it is damaged, or it has what real bodies rarely have: members that are null, or references.
    let mut value: Value = serde_json::from_slice(&text).map_err(|source| malformed(name, body, source))?;
    if has_references(&text) {
        fastjson::resolve_references(&mut value);
    }
    drop_nulls(&mut value);
    T::deserialize(value).map_err(|source| malformed(name, body, source))
}

pub(crate) fn encode<T: Serialize>(body: &T) -> Bytes {
    // Fails only for maps whose keys are no text, which no body has.
    serde_json::to_vec(body).expect("bodies have keys of text").into()
}

pub(crate) fn encode_bare_keys<T: Serialize>(body: &T) -> Bytes {
    let text = encode(body);
    let bare = fastjson::bare_object_keys(&text).into_owned();
    bare.into()
}

fn has_references(text: &[u8]) -> bool {
    text.windows(4).any(|window| window == b"$ref")
}

/// Takes members that are null out of objects. `serde_json` has bounded the depth.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn malformed(name: &str, body: &[u8], source: serde_json::Error) -> Error {
    let start = String::from_utf8_lossy(&body[..body.len().min(80)]);
    let message = format!("malformed {name} of {} bytes: {source}; it starts '{}'", body.len(), start.escape_debug());
    Error::new(ErrorKind::Protocol, message).with_source(source)
}

#[cfg(test)]
mod tests;
