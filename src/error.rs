//! The error of every fallible call: opaque, with a kind to branch on and a chain of sources to read.
//!
//! A broker's own answer (its response code and remark) is kept as data. The text says what happened, to which
//! address, topic, group or queue, and what to do; no program should branch on it.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// What went wrong, in the terms a caller can act on.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A setting or an argument is not valid. Nothing was sent.
    Config,
    /// The call does not fit the state of the object, for example a send after shutdown.
    State,
    /// No connection to the address could be made.
    Connect,
    /// The connection broke, or was closed, while the call was under way. The outcome at the peer is unknown.
    Closed,
    /// No answer within the time allowed. The outcome at the peer is unknown.
    Timeout,
    /// Another thread ended the wait.
    Interrupted,
    /// A bounded queue or table of this client is full; nothing was sent.
    Busy,
    /// The peer sent something that is not the protocol.
    Protocol,
    /// The broker or name server answered with a code that is not success; see [`Error::response_code`].
    Broker,
    /// The name servers know no route, or no usable queue or broker, for the topic.
    NoRoute,
    /// The message cannot be sent as it is: empty, too large, or with illegal properties.
    MessageIllegal,
    /// The operating system refused a socket, a thread or a file.
    Io,
    /// Code of the user (a listener, selector, strategy or hook) panicked or gave an unusable answer.
    UserCode,
}

/// Result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this client.
///
/// ```
/// use rocketmq_sync::{Error, ErrorKind};
/// let error = Error::new(ErrorKind::Timeout, "no answer to a pull within 30 s").with_address("127.0.0.1:10911");
/// assert_eq!(error.kind(), ErrorKind::Timeout);
/// assert_eq!(error.to_string(), "no answer to a pull within 30 s (127.0.0.1:10911)");
/// ```
#[derive(Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    address: Option<String>,
    response: Option<(i32, String)>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of the given kind whose text says what happened.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, message: message.into(), address: None, response: None, source: None }) }
    }

    /// A peer's answer with a code that is not success.
    pub fn broker(code: i32, remark: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::Broker, "");
        error.inner.response = Some((code, remark.into()));
        error
    }

    /// Adds the address that the call went to; the first one given stays.
    #[must_use]
    pub fn with_address(mut self, address: impl Into<String>) -> Self {
        if self.inner.address.is_none() {
            self.inner.address = Some(address.into());
        }
        self
    }

    /// Adds the error below this one.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.inner.source = Some(Arc::new(source));
        self
    }

    /// Puts what was being done in front of the text, as in `while asking for the route of T: ...`.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.inner.message =
            if self.inner.message.is_empty() { doing.to_string() } else { format!("{doing}: {}", self.inner.message) };
        self
    }

    /// What went wrong, to branch on.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The peer's response code (`ResponseCode` of the protocol), when it answered with one.
    pub fn response_code(&self) -> Option<i32> {
        self.inner.response.as_ref().map(|(code, _)| *code)
    }

    /// The peer's remark, when it answered with a code that is not success. For people, never to branch on.
    pub fn remark(&self) -> Option<&str> {
        self.inner.response.as_ref().map(|(_, remark)| remark.as_str())
    }

    /// The address the call went to, when there was one.
    pub fn address(&self) -> Option<&str> {
        self.inner.address.as_deref()
    }

    /// Whether the peer may have carried out the request although the call failed.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self.kind(), ErrorKind::Timeout | ErrorKind::Closed)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        if let Some((code, remark)) = &self.inner.response {
            if !self.inner.message.is_empty() {
                f.write_str(": ")?;
            }
            write!(f, "answered with code {code}")?;
            if !remark.is_empty() {
                // Java puts stack elements and help links behind the first line.
                let line = remark.lines().next().unwrap_or_default();
                write!(f, ", {}", line.chars().take(300).collect::<String>())?;
            }
        }
        if let Some(address) = &self.inner.address {
            write!(f, " ({address})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self}", self.inner.kind)?;
        if let Some(source) = &self.inner.source {
            write!(f, "; caused by {source}")?;
        }
        f.write_str(")")
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<std::io::Error> for Error {
    fn from(source: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, source.to_string()).with_source(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_answer_of_a_broker_as_data() {
        let error =
            Error::broker(17, "no such topic\nsee the manual").with_address("a:1").context("while sending to T");
        assert_eq!(error.response_code(), Some(17));
        assert_eq!(error.remark(), Some("no such topic\nsee the manual"));
        assert_eq!(error.to_string(), "while sending to T: answered with code 17, no such topic (a:1)");
    }

    #[test]
    fn is_one_pointer_wide() {
        assert_eq!(std::mem::size_of::<Error>(), std::mem::size_of::<usize>());
    }
}
