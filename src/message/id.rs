//! Ids of messages: the one that says where a message is stored, and the one that its client makes.
//!
//! Both are hex digits of the same length, so nobody can tell them apart by form; code here always says which.
//!
//! Source: `MessageDecoder`, `MessageClientIDSetter`, `UtilAll` of Apache RocketMQ.

use crate::base::net;
use crate::error::{Error, ErrorKind, Result};
use crate::time::to_millis;
use byteorder::{BigEndian, ByteOrder};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::SystemTime;

const DAY_MILLIS: i64 = 86_400_000;

/// The id of a message by its place: address of the broker and offset in its commit log.
///
/// ```
/// use rocketmq_sync::message::id::offset_message_id;
/// assert_eq!(offset_message_id("10.0.0.1:10911".parse().unwrap(), 0x123456), "0A00000100002A9F0000000000123456");
/// ```
pub fn offset_message_id(store_host: SocketAddr, commit_log_offset: i64) -> String {
    let mut out = String::with_capacity(56);
    push_ip(&mut out, store_host.ip());
    push_hex(&mut out, &u32::from(store_host.port()).to_be_bytes());
    push_hex(&mut out, &commit_log_offset.to_be_bytes());
    out
}

/// The address and the commit-log offset in an id from [`offset_message_id`], for IPv4 and IPv6.
///
/// # Errors
/// [`ErrorKind::Config`] when the text is not such an id.
pub fn parse_offset_message_id(id: &str) -> Result<(SocketAddr, i64)> {
    let wrong = |why: &str| {
        Err(Error::new(
            ErrorKind::Config,
            format!("'{}' is no offset message id: {why}", id.chars().take(64).collect::<String>()),
        ))
    };
    if !matches!(id.len(), 32 | 56) {
        return wrong("it needs 32 hex digits, or 56 with an IPv6 address");
    }
    let mut bytes = [0u8; 28];
    let bytes = &mut bytes[..id.len() / 2];
    for (byte, pair) in bytes.iter_mut().zip(id.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return wrong("it holds something other than hex digits");
        };
        *byte = (high << 4 | low) as u8;
    }
    let (ip, rest) = bytes.split_at(bytes.len() - 12);
    let ip: IpAddr = match <[u8; 4]>::try_from(ip) {
        Ok(v4) => v4.into(),
        Err(_) => <[u8; 16]>::try_from(ip).map(IpAddr::from).expect("56 digits leave 16 bytes"),
    };
    let Ok(port) = u16::try_from(BigEndian::read_u32(rest)) else {
        return wrong("its port is over 65535");
    };
    Ok((SocketAddr::new(ip, port), BigEndian::read_i64(&rest[4..])))
}

/// A new id for a message, unique among all clients. It goes into the property `UNIQ_KEY`.
pub fn create_unique_id() -> String {
    static GENERATOR: OnceLock<UniqueIdGenerator> = OnceLock::new();
    GENERATOR.get_or_init(UniqueIdGenerator::of_this_process).next_id()
}

/// Makes unique ids: address, process id, a constant of the process, time within the month, counter.
///
/// Tools take an id apart, so the layout is Java's, except that the month begins at midnight UTC and not at local
/// midnight: the standard library knows no time zones. A tool elsewhere so shows a time that is off by the zone.
pub struct UniqueIdGenerator {
    /// The digits that stay: address, process id, constant.
    prefix: String,
    counter: AtomicU16,
}

impl UniqueIdGenerator {
    /// A generator for the given parts. Of the process id the low 16 bits count.
    pub fn new(ip: IpAddr, process_id: u32, constant: u32) -> Self {
        let mut prefix = String::with_capacity(44);
        push_ip(&mut prefix, ip);
        push_hex(&mut prefix, &(process_id as u16).to_be_bytes());
        push_hex(&mut prefix, &constant.to_be_bytes());
        Self { prefix, counter: AtomicU16::new(0) }
    }

    fn of_this_process() -> Self {
        let random = RandomState::new().hash_one(SystemTime::now());
        // Without an address of its own Java takes four bytes of the clock; what counts is that hosts differ.
        let ip = match net::local_ip() {
            ip if ip.is_loopback() => Ipv4Addr::from((to_millis(SystemTime::now()) as u32).to_be_bytes()).into(),
            ip => ip,
        };
        Self::new(ip, std::process::id(), (random >> 32 ^ random) as u32)
    }

    /// The next id, for now.
    pub fn next_id(&self) -> String {
        self.id_at(to_millis(SystemTime::now()), self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// The id for a time in milliseconds since 1970 and a counter.
    pub fn id_at(&self, now_millis: i64, counter: u16) -> String {
        let mut out = String::with_capacity(self.prefix.len() + 12);
        out.push_str(&self.prefix);
        // A month has fewer milliseconds than a u32 has values.
        push_hex(&mut out, &((now_millis - month_start(now_millis)) as u32).to_be_bytes());
        push_hex(&mut out, &counter.to_be_bytes());
        out
    }
}

impl fmt::Debug for UniqueIdGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UniqueIdGenerator({}..)", self.prefix)
    }
}

/// Midnight UTC of the first day of the month that `millis` lies in.
fn month_start(millis: i64) -> i64 {
    let day = millis.div_euclid(DAY_MILLIS);
    // Day of the month from days since 1970, counted in years that begin in March (Howard Hinnant, "chrono-Compatible
    // Low-Level Date Algorithms").
    let day_of_era = (day + 719_468).rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5;
    (day - day_of_month) * DAY_MILLIS
}

fn push_ip(out: &mut String, ip: IpAddr) {
    match ip {
        IpAddr::V4(v4) => push_hex(out, &v4.octets()),
        IpAddr::V6(v6) => push_hex(out, &v6.octets()),
    }
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_ids_round_trip_for_both_kinds_of_address() {
        let known = [
            ("10.0.0.1:10911", 0x123456, "0A00000100002A9F0000000000123456"),
            ("[2001:db8::1]:10911", 0x123507, "20010DB800000000000000000000000100002A9F0000000000123507"),
            ("255.255.255.255:65535", -1, "FFFFFFFF0000FFFFFFFFFFFFFFFFFFFF"),
        ];
        for (host, offset, id) in known {
            let host: SocketAddr = host.parse().unwrap();
            assert_eq!(offset_message_id(host, offset), id);
            assert_eq!(parse_offset_message_id(id).unwrap(), (host, offset));
            assert_eq!(parse_offset_message_id(&id.to_lowercase()).unwrap(), (host, offset));
        }
    }

    #[test]
    fn refuses_what_is_no_offset_id() {
        let long = "0".repeat(56);
        for id in ["", "0A", "0A00000100002A9F000000000012345", "0A0000010001000000000000000000000", "é234567890123456"]
        {
            assert_eq!(parse_offset_message_id(id).unwrap_err().kind(), ErrorKind::Config, "{id}");
        }
        for id in ["0A00000100002A9F00000000001234 6", "0A00000100012A9F0000000000123456", "ééééééééééééééé1"]
        {
            assert_eq!(parse_offset_message_id(id).unwrap_err().kind(), ErrorKind::Config, "{id}");
        }
        assert!(parse_offset_message_id(&long).is_ok());
    }

    #[test]
    fn unique_ids_have_the_layout_that_tools_take_apart() {
        let generator = UniqueIdGenerator::new([192, 168, 1, 5].into(), 12345, 0x2A13_9A55);
        assert_eq!(generator.id_at(1_700_000_000_000, 7), "C0A8010530392A139A5547B760000007");
        let first = 1_698_796_800_000;
        assert_eq!(&generator.id_at(first, u16::MAX)[20..], "00000000FFFF");
        // The 26th, from where the number is negative for Java.
        assert_eq!(&generator.id_at(first + 25 * DAY_MILLIS, 0)[20..28], "80BEFC00");
        assert_eq!(UniqueIdGenerator::new("2001:db8::1".parse().unwrap(), 1, 2).id_at(first, 0).len(), 56);
    }

    #[test]
    fn months_begin_on_their_first_day() {
        let day = |year: i64, month: i64, day: i64| {
            let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
            let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
            (days - 719_468) * DAY_MILLIS
        };
        assert_eq!(day(1970, 1, 1), 0);
        for (year, month, last) in
            [(1970, 1, 31), (2023, 2, 28), (2024, 2, 29), (2100, 2, 28), (2000, 2, 29), (2026, 12, 31)]
        {
            let first = day(year, month, 1);
            assert_eq!(month_start(first), first, "{year}-{month}");
            assert_eq!(month_start(first - 1), day(if month == 1 { year - 1 } else { year }, (month + 10) % 12 + 1, 1));
            assert_eq!(month_start(day(year, month, last) + DAY_MILLIS - 1), first, "{year}-{month}");
        }
    }

    #[test]
    fn ids_of_one_process_differ() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| create_unique_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| matches!(id.len(), 32 | 56)));
    }
}
