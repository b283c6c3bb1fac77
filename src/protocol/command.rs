//! One request or response.

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::codes::{RequestCode, ResponseCode};
use crate::protocol::ext_fields::ExtFields;
use crate::protocol::frame::HEADER_WORD;
use crate::protocol::language::LanguageCode;
use crate::protocol::{CommandHeader, header_binary, header_json};
use bytes::Bytes;
use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};

/// The version of RocketMQ this client says it is: 5.3.3. Peers decide by it what they send; see [`version`].
///
/// [`version`]: crate::protocol::version
pub const VERSION: i32 = 479;

/// Flag bit of a response.
const RESPONSE: i32 = 1;
/// Flag bit of a request that wants no answer.
const ONEWAY: i32 = 2;

/// The form of a header. Each frame says which one it has, and an answer may have another one than its request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SerializeType {
    /// JSON text.
    #[default]
    Json,
    /// The compact binary form. It cannot carry codes over 32767, empty values, or an object without fields.
    Rocketmq,
}

/// A call id that no other call of this process has at the moment.
pub fn new_opaque() -> i32 {
    static NEXT: AtomicI32 = AtomicI32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// One request or response: what a frame carries.
#[derive(Clone, PartialEq, Eq)]
#[doc(alias = "org.apache.rocketmq.remoting.protocol.RemotingCommand")]
pub struct RemotingCommand {
    /// What is asked for (see [`RequestCode`]), or how it went ([`ResponseCode`]).
    pub code: i32,
    /// The language of the sender.
    pub language: LanguageCode,
    /// The version of the sender; see [`crate::protocol::version`].
    pub version: i32,
    /// The call id, which the response repeats. Each direction of a connection numbers its own calls.
    pub opaque: i32,
    /// Bit 0: a response. Bit 1: one way, no answer is wanted.
    pub flag: i32,
    /// Text for people: what went wrong.
    pub remark: Option<String>,
    /// The custom header.
    pub ext_fields: ExtFields,
    /// The form in which the header came, or is to be written.
    pub serialize_type: SerializeType,
    /// The body, which may be empty.
    pub body: Bytes,
}

impl RemotingCommand {
    /// A request with a custom header, in JSON form.
    pub fn request<'a, H: CommandHeader<'a>>(code: RequestCode, header: &H) -> Self {
        Self::request_in_form(SerializeType::Json, code, header)
    }

    /// A request with a custom header in the given form. The same as setting `serialize_type` afterwards, but the
    /// header is built in that form at once.
    pub fn request_in_form<'a, H: CommandHeader<'a>>(form: SerializeType, code: RequestCode, header: &H) -> Self {
        let mut request = Self::blank(code.value(), new_opaque(), 0, form);
        header.write(&mut request.ext_fields);
        request
    }

    /// A request without a custom header.
    pub fn request_without_header(code: RequestCode) -> Self {
        Self::blank(code.value(), new_opaque(), 0, SerializeType::Json)
    }

    /// A response without a custom header. The opaque is that of the request, which the sender of the response sets.
    pub fn response(code: ResponseCode, remark: Option<String>) -> Self {
        Self { remark, ..Self::blank(code.value(), 0, RESPONSE, SerializeType::Json) }
    }

    /// A response with a custom header.
    pub fn response_with<'a, H: CommandHeader<'a>>(code: ResponseCode, header: &H) -> Self {
        let mut response = Self::blank(code.value(), 0, RESPONSE, SerializeType::Json);
        header.write(&mut response.ext_fields);
        response.ext_fields.set_present();
        response
    }

    fn blank(code: i32, opaque: i32, flag: i32, serialize_type: SerializeType) -> Self {
        Self {
            code,
            language: LanguageCode::RUST,
            version: VERSION,
            opaque,
            flag,
            remark: None,
            ext_fields: ExtFields::in_form(serialize_type),
            serialize_type,
            body: Bytes::new(),
        }
    }

    /// With this body.
    #[must_use]
    pub fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// With this text for people.
    #[must_use]
    pub fn with_remark(mut self, remark: impl Into<String>) -> Self {
        self.remark = Some(remark.into());
        self
    }

    /// As a request that wants no answer.
    #[must_use]
    pub fn oneway(mut self) -> Self {
        self.flag |= ONEWAY;
        self
    }

    /// Whether this is a response. To be looked at before the opaque: the two directions number their calls apart.
    pub fn is_response(&self) -> bool {
        self.flag & RESPONSE != 0
    }

    /// Whether no answer is wanted.
    pub fn is_oneway(&self) -> bool {
        self.flag & ONEWAY != 0
    }

    /// The code as that of a request.
    pub fn request_code(&self) -> RequestCode {
        RequestCode(self.code)
    }

    /// The code as that of a response.
    pub fn response_code(&self) -> ResponseCode {
        ResponseCode(self.code)
    }

    /// The custom header.
    ///
    /// # Errors
    /// As [`CommandHeader::read`].
    pub fn header<'a, H: CommandHeader<'a>>(&'a self) -> Result<H> {
        H::read(&self.ext_fields)
    }

    /// Appends the frame up to its body: length, header word, header. The length counts the body, which is to be
    /// written behind it as it is.
    ///
    /// The length is what it is: whether the peer takes a frame of that size is for the caller to check.
    pub fn encode_head(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        let form = match self.serialize_type {
            SerializeType::Json => {
                header_json::encode(self, out);
                0
            }
            SerializeType::Rocketmq => {
                header_binary::encode(self, out);
                1 << 24
            }
        };
        let header = out.len() - start - 8;
        let total = HEADER_WORD + header + self.body.len();
        // Java writes these without looking, too; no header comes near 16 MiB, and over it the peer refuses the frame.
        out[start..start + 4].copy_from_slice(&(total as u32).to_be_bytes());
        out[start + 4..start + 8].copy_from_slice(&(form | (header as u32 & 0x00FF_FFFF)).to_be_bytes());
    }

    /// Reads a frame, without the four bytes of its length. Body and custom fields stay parts of `frame`.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] when the bytes are no header in either form. The connection must then be closed.
    pub fn decode(frame: Bytes) -> Result<Self> {
        let Some(word) = frame.first_chunk::<4>() else {
            return Err(malformed(format_args!("{} bytes have no room for a header word", frame.len())));
        };
        let word = u32::from_be_bytes(*word);
        let (form, length) = (word >> 24, (word & 0x00FF_FFFF) as usize);
        let left = frame.len() - HEADER_WORD;
        if length == 0 || length > left {
            return Err(malformed(format_args!("its length is {length} of {left} bytes")));
        }
        let end = HEADER_WORD + length;
        let body = if end == frame.len() { Bytes::new() } else { frame.slice(end..) };
        match form {
            0 => header_json::decode(frame, HEADER_WORD..end, body),
            1 => header_binary::decode(frame, HEADER_WORD..end, body),
            other => Err(malformed(format_args!("it has the unknown form {other}"))),
        }
    }
}

/// The error of a header that cannot be read.
#[cold]
pub(crate) fn malformed(reason: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Protocol, format!("malformed header: {reason}"))
}

impl fmt::Debug for RemotingCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RemotingCommand");
        if self.is_response() {
            out.field("response", &self.response_code());
        } else {
            out.field("request", &self.request_code());
        }
        out.field("opaque", &self.opaque).field("flag", &self.flag);
        out.field("language", &self.language).field("version", &self.version);
        out.field("remark", &self.remark).field("ext_fields", &self.ext_fields);
        out.field("body_length", &self.body.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
