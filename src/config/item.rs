//! Builder items: one line declares a setter and the same item by its name for `set("name", "value")`.

use crate::error::{Error, ErrorKind, Result};
use crate::time::from_millis;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

/// A value that can be read from the text of a command line or a properties file.
pub(crate) trait Item: Sized {
    fn from_text(text: &str) -> std::result::Result<Self, &'static str>;
}

macro_rules! number_items {
    ($($number:ty),*) => { $(
        impl Item for $number {
            fn from_text(text: &str) -> std::result::Result<Self, &'static str> {
                text.trim().parse().map_err(|_| concat!("is not a whole number in the range of ", stringify!($number)))
            }
        }
    )* };
}
number_items!(u16, u32, u64, usize, i32, i64);

impl Item for bool {
    fn from_text(text: &str) -> std::result::Result<Self, &'static str> {
        text.trim().parse().map_err(|_| "is neither true nor false")
    }
}

impl<T: Item> Item for Option<T> {
    fn from_text(text: &str) -> std::result::Result<Self, &'static str> {
        if text.trim() == "none" { Ok(None) } else { T::from_text(text).map(Some) }
    }
}

/// `1500`, `1500ms`, `20s` or `15m`; a bare number counts milliseconds.
impl Item for Duration {
    fn from_text(text: &str) -> std::result::Result<Self, &'static str> {
        let text = text.trim();
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &text[digits.len()..] {
            "" | "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err("is not a duration: give milliseconds, or a number with ms, s, m or h"),
        };
        let number: u64 =
            digits.parse().map_err(|_| "is not a duration: give milliseconds, or a number with ms, s, m or h")?;
        number.checked_mul(unit).map(Duration::from_millis).ok_or("is a duration out of range")
    }
}

/// Milliseconds since 1970.
impl Item for SystemTime {
    fn from_text(text: &str) -> std::result::Result<Self, &'static str> {
        i64::from_text(text).map(from_millis).map_err(|_| "is not a time in milliseconds since 1970")
    }
}

/// Refuses a value outside its bounds with a text that names item, value and bounds.
pub(crate) fn check_range<T: PartialOrd + Display>(item: &str, value: T, bounds: RangeInclusive<T>) -> Result<()> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let (least, most) = bounds.into_inner();
    Err(Error::new(ErrorKind::Config, format!("{item} is {value}; it must be from {least} to {most}")))
}

/// Declares setters of a builder together with their use by name. Text items take whatever turns into a string.
macro_rules! builder_items {
    ($builder:ident, $lookup:ident {
        text { $( $(#[$text_doc:meta])* $text:ident => $($text_field:ident).+ ; )* }
        values { $( $(#[$doc:meta])* $name:ident : $kind:ty => $($field:ident).+ ; )* }
    }) => {
        impl $builder {
            $( $(#[$text_doc])* pub fn $text(mut self, value: impl Into<String>) -> Self {
                self.$($text_field).+ = value.into().into();
                self
            } )*

            $( $(#[$doc])* pub fn $name(mut self, value: $kind) -> Self {
                self.$($field).+ = value;
                self
            } )*

            /// Sets the item of this name from text; `false` when there is none.
            fn $lookup(&mut self, name: &str, text: &str) -> $crate::error::Result<bool> {
                match name {
                    $( stringify!($text) => self.$($text_field).+ = text.to_owned().into(), )*
                    $( stringify!($name) => match <$kind as $crate::config::Item>::from_text(text) {
                        Ok(value) => self.$($field).+ = value,
                        Err(why) => return Err($crate::error::Error::new(
                            $crate::error::ErrorKind::Config, format!("{name}: '{text}' {why}"),
                        )),
                    }, )*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}
pub(crate) use builder_items;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations_with_and_without_a_unit() {
        let read = |text| Duration::from_text(text).ok();
        assert_eq!(read("1500"), Some(Duration::from_millis(1500)));
        assert_eq!(read("20s"), Some(Duration::from_secs(20)));
        assert_eq!(read("15m"), Some(Duration::from_secs(900)));
        for wrong in ["", "s", "-1", "1.5s", "3 weeks", "99999999999999999999"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read(&format!("{}h", u64::MAX)), None);
    }

    #[test]
    fn a_bound_is_told_with_item_and_value() {
        let text = check_range("pull_batch_size", 0, 1..=1024).unwrap_err().to_string();
        assert_eq!(text, "pull_batch_size is 0; it must be from 1 to 1024");
    }
}
