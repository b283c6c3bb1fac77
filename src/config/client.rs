//! Settings that a client instance takes from the first producer or consumer that starts it.

use super::item::check_range;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{LanguageCode, SerializeType};
use std::sync::Arc;
use std::time::Duration;

/// The shared part of every builder. Source of names and defaults: `ClientConfig` of the Java client.
#[derive(Debug, Clone)]
pub(crate) struct ClientConfig {
    pub(crate) name_servers: String,
    pub(crate) client_ip: Option<String>,
    pub(crate) instance_name: Option<String>,
    pub(crate) unit_name: Option<String>,
    pub(crate) route_interval: Duration,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) persist_interval: Duration,
    pub(crate) rebalance_interval: Duration,
    pub(crate) rebalance_min_interval: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) binary_headers: bool,
    pub(crate) language: i32,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            name_servers: String::new(),
            client_ip: None,
            instance_name: None,
            unit_name: None,
            route_interval: Duration::from_secs(30),
            heartbeat_interval: Duration::from_secs(30),
            persist_interval: Duration::from_secs(5),
            rebalance_interval: Duration::from_secs(20),
            rebalance_min_interval: Duration::from_millis(250),
            request_timeout: Duration::from_secs(3),
            connect_timeout: Duration::from_secs(3),
            binary_headers: false,
            language: LanguageCode::RUST.0,
        }
    }
}

impl ClientConfig {
    /// Checks every item; the error names the first one that is wrong.
    pub(crate) fn check(&self) -> Result<()> {
        self.name_server_list()?;
        let millis = |duration: Duration| duration.as_millis();
        check_range("route_interval (ms)", millis(self.route_interval), 10..=3_600_000)?;
        check_range("heartbeat_interval (ms)", millis(self.heartbeat_interval), 10..=100_000)?;
        check_range("persist_interval (ms)", millis(self.persist_interval), 10..=3_600_000)?;
        check_range("rebalance_interval (ms)", millis(self.rebalance_interval), 10..=3_600_000)?;
        check_range("rebalance_min_interval (ms)", millis(self.rebalance_min_interval), 0..=60_000)?;
        check_range("request_timeout (ms)", millis(self.request_timeout), 10..=600_000)?;
        check_range("connect_timeout (ms)", millis(self.connect_timeout), 10..=600_000)?;
        for (item, text) in
            [("client_ip", &self.client_ip), ("instance_name", &self.instance_name), ("unit_name", &self.unit_name)]
        {
            // `@` parts a client id, and control characters would spoil the broker's listings and file names.
            if let Some(text) = text
                && (text.trim().is_empty() || text.len() > 255 || text.chars().any(|c| c.is_control()))
            {
                return Err(Error::new(
                    ErrorKind::Config,
                    format!("{item} is {text:?}; it must be 1 to 255 characters without control characters"),
                ));
            }
        }
        Ok(())
    }

    /// The name servers, from the item or else from the environment variable `NAMESRV_ADDR`.
    pub(crate) fn name_server_list(&self) -> Result<Vec<Arc<str>>> {
        let given = if self.name_servers.trim().is_empty() {
            std::env::var("NAMESRV_ADDR").unwrap_or_default()
        } else {
            self.name_servers.clone()
        };
        let list = given
            .split([';', ',', ' ', '\t', '\n'])
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(check_address)
            .collect::<Result<Vec<_>>>()?;
        if list.is_empty() {
            return Err(Error::new(
                ErrorKind::Config,
                "name_servers is empty and NAMESRV_ADDR is not set; give 'host:port', several joined with ';'",
            ));
        }
        Ok(list)
    }

    pub(crate) fn serialize_type(&self) -> SerializeType {
        if self.binary_headers { SerializeType::Rocketmq } else { SerializeType::Json }
    }
}

/// One entry of the list, without the scheme that some configurations carry.
fn check_address(entry: &str) -> Result<Arc<str>> {
    let address = entry.strip_prefix("http://").map_or(entry, |rest| rest.rsplit('/').next().unwrap_or(rest));
    let wrong = |why: &str| Err(Error::new(ErrorKind::Config, format!("name_servers: '{entry}' {why}")));
    let Some((host, port)) = address.rsplit_once(':') else {
        return wrong("has no port; give 'host:port'");
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if bare.is_empty() || bare.contains(['/', '[', ']', '@']) {
        return wrong("is not 'host:port'");
    }
    if bare == host && bare.contains(':') && bare.parse::<std::net::Ipv6Addr>().is_err() {
        return wrong("is not 'host:port'; join several with ';'");
    }
    match port.parse::<u16>() {
        Ok(1..) => Ok(Arc::from(address)),
        _ => wrong("has no port from 1 to 65535 behind its last ':'"),
    }
}

/// The items of [`ClientConfig`] that every builder has; `$($client).+` leads to it from the builder.
macro_rules! client_items {
    ($builder:ident, $lookup:ident, $($client:ident).+) => {
        $crate::config::builder_items!($builder, $lookup {
            text {
                /// Name servers as `host:port`, several joined with `;`. Default: the environment variable `NAMESRV_ADDR`.
                name_servers => $($client).+.name_servers;
                /// The address in the client id. Default: the first suitable one of an interface that is up.
                client_ip => $($client).+.client_ip;
                /// The name in the client id; clients of one process with equal ids share connections and threads. Default:
                /// one of its own for each client, with randomness in it.
                instance_name => $($client).+.instance_name;
                /// Appended to the client id. Default: none.
                unit_name => $($client).+.unit_name;
            }
            values {
                /// How often routes are refreshed. Default 30 s, from 10 ms to 1 h.
                route_interval: std::time::Duration => $($client).+.route_interval;
                /// How often brokers hear a heartbeat. Default 30 s, from 10 ms to 100 s (brokers forget a client after
                /// 120 s).
                heartbeat_interval: std::time::Duration => $($client).+.heartbeat_interval;
                /// Time for one small request: routes, heartbeats, members, offsets. Default 3 s, from 10 ms to 10 min.
                request_timeout: std::time::Duration => $($client).+.request_timeout;
                /// Time to open a connection. Default 3 s, from 10 ms to 10 min.
                connect_timeout: std::time::Duration => $($client).+.connect_timeout;
                /// Sends headers in the compact ROCKETMQ form instead of JSON. Default false.
                binary_headers: bool => $($client).+.binary_headers;
                /// The language code in requests (`LanguageCode`). Default 12, RUST; 7, OTHER, for servers that refuse it.
                language: i32 => $($client).+.language;
            }
        });
    };
}
pub(crate) use client_items;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<Vec<Arc<str>>> {
        ClientConfig { name_servers: text.into(), ..Default::default() }.name_server_list()
    }

    #[test]
    fn takes_every_separator_and_both_address_families() {
        let names = list(" a:9876; b.example:1,[::1]:2\n http://c:3 ").unwrap();
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["a:9876", "b.example:1", "[::1]:2", "c:3"]);
    }

    #[test]
    fn names_the_bad_entry() {
        for bad in ["a", "a:", "a:0", "a:70000", ":9876", "a:b:1", "https://a:1"] {
            let text = list(&format!("good:1;{bad}")).unwrap_err().to_string();
            assert!(text.contains(&format!("'{bad}'")), "{text}");
        }
    }
}
