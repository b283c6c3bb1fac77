//! Moments as people type them and as events carry them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `YYYYMMDDHHMMSS` in UTC, from 1970 on; `None` when it is no moment.
pub fn parse(text: &str) -> Option<SystemTime> {
    if text.len() != 14 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let field = |from: usize, to: usize| text[from..to].parse::<u64>().ok();
    let (year, month, day) = (field(0, 4)?, field(4, 6)?, field(6, 8)?);
    let (hour, minute, second) = (field(8, 10)?, field(10, 12)?, field(12, 14)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || !(1..=days_in_month).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days of the Gregorian calendar, in years that begin in March so that the leap day comes last.
    let (march_year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_before_year = march_year * 365 + march_year / 4 - march_year / 100 + march_year / 400;
    let days = days_before_year + (march_month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(UNIX_EPOCH + Duration::from_secs(((days * 24 + hour) * 60 + minute) * 60 + second))
}

/// Milliseconds since 1970.
pub fn millis(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_in_utc() {
        for (text, seconds) in [
            ("19700101000000", 0),
            ("20000229235959", 951_868_799),
            ("20240301000000", 1_709_251_200),
            ("20261130173000", 1_796_059_800),
        ] {
            assert_eq!(parse(text).map(millis), Some(seconds * 1000), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_moment_is_refused() {
        for text in [
            "",
            "2024",
            "19691231235959",
            "20230229000000",
            "20241301000000",
            "20240100000000",
            "20240101240000",
            "2024010100000x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
