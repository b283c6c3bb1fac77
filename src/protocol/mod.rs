//! Bytes to typed values and back: frames, headers, bodies. No socket, no thread, no clock.
//!
//! - [`frame`]: the length in front of a frame. [`RemotingCommand`]: one frame, in the JSON or the binary form.
//! - [`ExtFields`]: the custom fields of a header as the wire has them; [`header`]: what they mean for each request and
//!   response, one file a family, both directions, so that client and embedded broker share them.
//! - [`body`]: the JSON bodies. [`SubscriptionData`]: what a consumer asks for, and the check of its tags.
//!
//! Nothing here trusts what it reads: lengths are checked before they are used, depth is bounded, and whatever is
//! wrong is an error of kind [`Protocol`](crate::ErrorKind::Protocol) that names what and where.
//!
//! Source: `RemotingCommand`, `RocketMQSerializable`, `RemotingSerializable` of Apache RocketMQ.

mod codes;
mod command;
mod command_header;
mod decimal;
mod entry_buffer;
mod entry_form;
mod ext_fields;
mod header_binary;
mod header_json;
mod header_json_any;
mod key;
mod language;
mod scan;
mod subscription;
mod wire_enum;
mod writer;

pub mod body;
pub mod frame;
pub mod header;
pub mod version;

#[cfg(test)]
mod hostile_tests;

pub use codes::{RequestCode, ResponseCode};
pub use command::{RemotingCommand, SerializeType, VERSION, new_opaque};
pub use command_header::CommandHeader;
pub use ext_fields::ExtFields;
pub use language::LanguageCode;
pub use subscription::SubscriptionData;
