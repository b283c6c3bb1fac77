//! Standard output: data only, a line an event, flushed, in one of two forms.

use serde::Serialize;
use std::io::{self, Write};

/// The form of the lines.
#[derive(Clone, Copy)]
pub enum Output {
    /// One JSON object a line.
    Json,
    /// Lines that a person can read.
    Text,
}

impl Output {
    /// Writes `event` as JSON, or the line that `text` makes of it; an event without a line stays silent in text form.
    pub fn write<E: Serialize>(self, event: &E, text: impl FnOnce(&E) -> Option<String>) -> io::Result<()> {
        let mut line = match self {
            Self::Json => serde_json::to_string(event)?,
            Self::Text => match text(event) {
                Some(line) => line,
                None => return Ok(()),
            },
        };
        line.push('\n');
        // One write under the lock: lines of several threads never mix, and a reader never waits for half a line.
        let mut out = io::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.flush()
    }
}
