//! How a subcommand fails: one line on standard error, and an exit code that scripts can tell apart.

use rocketmq_sync::{Error, ErrorKind};
use std::fmt;
use std::process::ExitCode;

/// Why a subcommand did not end well.
pub enum Failure {
    /// The command line is wrong; the text names the option. Exit code 2.
    Usage(String),
    /// It was under way when something went wrong; the text says what and where. Exit code 1.
    Failed(String),
}

impl Failure {
    /// A wrong or missing option, named as people type it.
    pub fn option(name: &str, why: impl fmt::Display) -> Self {
        Self::Usage(format!("--{name}: {why}"))
    }

    /// What the library refused to start with: a wrong setting under the name of the option that it came from, where
    /// `items` are the options that set an item of the builder and the names of these items.
    pub fn refused<'a>(error: Error, items: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        if error.kind() != ErrorKind::Config {
            return error.into();
        }
        let text = error.to_string();
        let named_first =
            [("namesrv", "name_servers"), ("topic", "topic"), ("topic", "tag expression"), ("group", "group")];
        match named_first.into_iter().chain(items).find(|(_, start)| text.starts_with(start)) {
            Some((option, _)) => Self::option(option, text),
            None => Self::Usage(text),
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Usage(text) | Self::Failed(text) => text.clone(),
        };
        // One line, whatever a broker wrote in its remark.
        f.write_str(&text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::Usage(error.to_string())
    }
}
