//! Reading option values, each failure naming its option.

use crate::failure::Failure;
use lexopt::{Parser, ValueExt};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// The value of the option `name` that the parser has just met, as text.
pub fn text(parser: &mut Parser, name: &str) -> Result<String, Failure> {
    let value = parser.value().map_err(|_| Failure::option(name, "needs a value"))?;
    value.string().map_err(|_| Failure::option(name, "the value is not valid UTF-8"))
}

/// The value of the option `name`, parsed.
pub fn parsed<T: FromStr<Err: Display>>(parser: &mut Parser, name: &str) -> Result<T, Failure> {
    let value = text(parser, name)?;
    value.parse().map_err(|error| Failure::option(name, format!("cannot use {value:?}: {error}")))
}

/// The value of the option `name`, a number of at least `least`.
pub fn number(parser: &mut Parser, name: &str, least: u64) -> Result<u64, Failure> {
    let value = parsed(parser, name)?;
    if value < least {
        return Err(Failure::option(name, format!("{value} is less than {least}")));
    }
    Ok(value)
}

/// The value of the option `name`, a number of milliseconds.
pub fn millis(parser: &mut Parser, name: &str) -> Result<Duration, Failure> {
    Ok(Duration::from_millis(number(parser, name, 0)?))
}

/// The value of the option `name`, a positive number of seconds, fractions allowed.
pub fn seconds(parser: &mut Parser, name: &str) -> Result<Duration, Failure> {
    let value: f64 = parsed(parser, name)?;
    match Duration::try_from_secs_f64(value) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(Failure::option(name, format!("{value} is not a positive number of seconds"))),
    }
}

/// The value of the option `name`, of the form `KEY=VALUE`.
pub fn pair(parser: &mut Parser, name: &str) -> Result<(String, String), Failure> {
    let value = text(parser, name)?;
    match value.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::option(name, format!("{value:?} is not KEY=VALUE"))),
    }
}

/// A required option.
pub fn required<T>(value: Option<T>, name: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::option(name, "required, but missing"))
}

/// The name servers: the option, else the environment, else an error.
pub fn name_servers(option: Option<String>) -> Result<String, Failure> {
    option
        .or_else(|| std::env::var("NAMESRV_ADDR").ok())
        .filter(|addresses| !addresses.trim().is_empty())
        .ok_or_else(|| Failure::option("namesrv", "required, but missing, and NAMESRV_ADDR is not set either"))
}
