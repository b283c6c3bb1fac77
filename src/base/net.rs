//! Addresses as RocketMQ writes them, their resolution, and the local address.
//!
//! An address is `host:port`, split at the last colon, with one pair of brackets around the host taken off; so IPv6
//! hosts are read with and without brackets, and with a scope (`[fe80::1%eth0]:10911`). A scope names an interface of
//! whoever wrote the address: a number is passed on, a name is looked up among the interfaces here, and one that is
//! not found makes the address unreachable, not malformed.

use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

/// A host, by name or number, and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// Name or number, without brackets and scope.
    pub host: String,
    /// The scope of a link-local IPv6 address: number or name of an interface.
    pub scope: Option<String>,
    /// The port, never zero.
    pub port: u16,
}

impl HostPort {
    /// Reads `host:port`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the text that is no address and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            let text: String = text.chars().take(120).collect();
            Error::new(
                ErrorKind::Config,
                format!("{text:?} is no address: {why}; write host:port, as in 127.0.0.1:9876"),
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(|| bad("there is no port"))?;
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad("the port is not a number"));
        }
        let port: u16 =
            port.parse().ok().filter(|port| *port > 0).ok_or_else(|| bad("the port is not in 1 to 65535"))?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(|| bad("a bracket is not closed"))?,
            None => host,
        };
        let (host, scope) = match host.split_once('%') {
            Some((host, scope)) => (host, Some(scope.to_owned())),
            None => (host, None),
        };
        if host.is_empty() {
            return Err(bad("there is no host"));
        }
        if host.contains(|c: char| c.is_whitespace() || c.is_control() || "/[]@;,".contains(c)) {
            return Err(bad("the host has a character that no host name has"));
        }
        if host.contains(':') && host.parse::<Ipv6Addr>().is_err() {
            return Err(bad("the host is neither a name nor an IPv6 address"));
        }
        Ok(Self { host: host.to_owned(), scope, port })
    }

    /// The address when the host is a number, so that nothing has to be resolved.
    ///
    /// # Errors
    /// When the scope is the name of no interface here.
    pub fn literal(&self) -> io::Result<Option<SocketAddr>> {
        match self.host.parse() {
            Ok(IpAddr::V4(ip)) => Ok(Some((ip, self.port).into())),
            Ok(IpAddr::V6(ip)) => {
                let scope = self.scope.as_deref().map_or(Ok(0), scope_number)?;
                Ok(Some(SocketAddrV6::new(ip, self.port, 0, scope).into()))
            }
            Err(_) => Ok(None),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.scope, self.host.contains(':')) {
            (Some(scope), _) => write!(f, "[{}%{scope}]:{}", self.host, self.port),
            (None, true) => write!(f, "[{}]:{}", self.host, self.port),
            (None, false) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

fn scope_number(scope: &str) -> io::Result<u32> {
    if let Ok(number) = scope.parse() {
        return Ok(number);
    }
    let found = if_addrs::get_if_addrs()?.into_iter().find(|interface| interface.name == scope);
    found.and_then(|interface| interface.index).ok_or_else(|| {
        io::Error::new(io::ErrorKind::AddrNotAvailable, format!("there is no interface {scope:?} on this host"))
    })
}

/// Reads a list of name servers: separated by `;`, `,` or blanks, each with an optional scheme (`http://`). Repetitions
/// count once; the order stays.
///
/// # Errors
/// [`ErrorKind::Config`] naming the entry that is no address, or when there is none at all.
pub fn parse_address_list(text: &str) -> Result<Vec<Arc<str>>> {
    let mut list: Vec<Arc<str>> = Vec::new();
    for entry in text.split(|c: char| c == ';' || c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty()) {
        let address = entry.split_once("://").map_or(entry, |(_, rest)| rest);
        let address = HostPort::parse(address.trim_end_matches('/'))?.to_string();
        if !list.iter().any(|known| **known == *address) {
            list.push(address.into());
        }
    }
    if list.is_empty() {
        return Err(Error::new(
            ErrorKind::Config,
            "the list of name servers is empty; give at least one host:port, separated by ';'",
        ));
    }
    Ok(list)
}

/// Writes an address as RocketMQ does: IPv6 in brackets and without scope.
pub fn format_address(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.to_string(),
        SocketAddr::V6(address) => format!("[{}]:{}", address.ip(), address.port()),
    }
}

/// Turns host names into addresses. May block, so it never runs on a thread that others wait for.
pub trait Resolver: Send + Sync {
    /// All addresses of the host, the one to try first in front.
    ///
    /// # Errors
    /// When the name is not known, or nobody can be asked.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }
}

/// The address of this host that a client puts into its id, chosen as the Java client does: among the interfaces that
/// are up and neither loopback, point-to-point nor a bridge, the first public IPv4 address, else the last private one,
/// else the first IPv6 address that is not link-local, else the first. Without any: what the host's interfaces have
/// left, which is loopback.
pub fn local_ip() -> IpAddr {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_else(|error| {
        log::warn!("the interfaces of this host cannot be listed, so the client id has 127.0.0.1: {error}");
        Vec::new()
    });
    let usable = interfaces.iter().filter(|interface| {
        interface.is_oper_up() && !interface.is_loopback() && !interface.is_p2p() && !is_bridge(&interface.name)
    });
    choose_local(usable.map(if_addrs::Interface::ip)).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// An alias (`eth0:1`) counts as virtual and is passed over, too.
fn is_bridge(name: &str) -> bool {
    name.contains(':') || Path::new("/sys/class/net").join(name).join("bridge").exists()
}

fn choose_local(candidates: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let (mut private, mut v6, mut link_local) = (None, None, None);
    for ip in candidates {
        match ip {
            IpAddr::V4(v4) if v4.is_private() || v4.is_link_local() || v4.is_unspecified() => private = Some(ip),
            IpAddr::V4(_) => return Some(ip),
            IpAddr::V6(v6_address) if v6_address.is_unicast_link_local() => link_local = link_local.or(Some(ip)),
            IpAddr::V6(_) => v6 = v6.or(Some(ip)),
        }
    }
    private.or(v6).or(link_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form_that_a_route_may_have() {
        for (text, host, scope, port) in [
            ("127.0.0.1:9876", "127.0.0.1", None, 9876),
            ("broker-a.example:10911", "broker-a.example", None, 10911),
            ("broker_a:1", "broker_a", None, 1),
            ("[2001:db8:0:0:0:0:0:1]:10911", "2001:db8:0:0:0:0:0:1", None, 10911),
            ("2001:db8::1:10911", "2001:db8::1", None, 10911),
            ("::1:65535", "::1", None, 65535),
            ("[fe80:0:0:0:0:0:0:1%eth0]:10911", "fe80:0:0:0:0:0:0:1", Some("eth0"), 10911),
            ("fe80::1%3:10911", "fe80::1", Some("3"), 10911),
        ] {
            let read = HostPort::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((&*read.host, read.scope.as_deref(), read.port), (host, scope, port), "{text}");
            assert_eq!(HostPort::parse(&read.to_string()).ok(), Some(read), "{text}: written and read again");
        }
    }

    #[test]
    fn names_what_is_wrong_with_an_address() {
        for (text, why) in [
            ("", "no port"),
            ("localhost", "no port"),
            (":9876", "no host"),
            ("a:", "not a number"),
            ("a:+1", "not a number"),
            ("a:0", "1 to 65535"),
            ("a:65536", "1 to 65535"),
            ("[::1:9876", "not closed"),
            ("a b:1", "character"),
            ("a:b:1", "neither a name"),
            ("http://a:1", "character"),
        ] {
            let error = HostPort::parse(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains(why) && error.to_string().contains(text), "{text}: {error}");
        }
    }

    #[test]
    fn a_scope_is_passed_on_or_looked_up_and_never_a_panic() {
        let scoped = |text: &str| HostPort::parse(text).expect("an address").literal();
        let Ok(Some(SocketAddr::V6(address))) = scoped("[fe80::1%7]:1") else { panic!("an IPv6 address") };
        assert_eq!(address.scope_id(), 7);
        let error = scoped("[fe80::1%no-such-interface]:1").expect_err("unknown interface");
        assert!(error.to_string().contains("no-such-interface"), "{error}");
        assert!(scoped("localhost:1").expect("a name").is_none());
    }

    #[test]
    fn a_list_may_be_separated_as_people_do() {
        let list = parse_address_list("a:1; b:2,c:3  http://d:4/\n[::1]:5;;a:1").expect("a good list");
        let list: Vec<&str> = list.iter().map(|address| &**address).collect();
        assert_eq!(list, ["a:1", "b:2", "c:3", "d:4", "[::1]:5"]);
        assert!(parse_address_list("a:1;b").expect_err("no port").to_string().contains("\"b\""));
        assert!(parse_address_list(" ; ").expect_err("empty").to_string().contains("empty"));
    }

    #[test]
    fn writes_ipv6_in_brackets_and_without_scope() {
        let scoped = SocketAddrV6::new("fe80::1".parse().expect("an address"), 10911, 0, 3);
        assert_eq!(format_address(scoped.into()), "[fe80::1]:10911");
        assert_eq!(format_address(([10, 0, 0, 1], 1).into()), "10.0.0.1:1");
    }

    #[test]
    fn prefers_a_public_address_then_the_last_private_one() {
        let choose = |list: &[&str]| {
            choose_local(list.iter().map(|ip| ip.parse().expect("an address"))).map(|ip| ip.to_string())
        };
        assert_eq!(choose(&["10.0.0.1", "8.8.8.8", "9.9.9.9"]).as_deref(), Some("8.8.8.8"));
        assert_eq!(choose(&["10.0.0.1", "192.168.1.1", "2001:db8::1"]).as_deref(), Some("192.168.1.1"));
        assert_eq!(choose(&["fe80::1", "2001:db8::1"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(choose(&["fe80::1"]).as_deref(), Some("fe80::1"));
        assert_eq!(choose(&[]), None);
        assert!(!local_ip().is_unspecified());
    }
}
