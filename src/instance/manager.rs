//! Client id to instance, for the whole process. Source: `MQClientManager` (02-consumer 1.2).

use super::ClientInstance;
use crate::base::{net, rng};
use crate::config::ClientConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Mutex, Rank};
use std::collections::HashMap;
use std::sync::Arc;

struct Entry {
    instance: Arc<ClientInstance>,
    users: usize,
}

static INSTANCES: Mutex<Option<HashMap<Arc<str>, Entry>>> = Mutex::new(Rank::Registry, None);

/// The instance of this configuration's client id, started when it is the first use. Each call owes a [`release`].
pub(crate) fn acquire(config: &ClientConfig) -> Result<Arc<ClientInstance>> {
    let client_id = client_id(config);
    let mut instances = INSTANCES.lock();
    let instances = instances.get_or_insert_default();
    if let Some(entry) = instances.get_mut(&client_id) {
        // What the first client was told counts for all: that must not be another cluster.
        let known = entry.instance.name_servers();
        if *known != *config.name_server_list()? {
            let text =
                format!("client id '{client_id}' is in use with name servers {known:?}; give another instance_name");
            return Err(Error::new(ErrorKind::State, text));
        }
        entry.users += 1;
        return Ok(entry.instance.clone());
    }
    // Starting sends nothing, so the lock is held for the start of some threads only.
    let instance = Arc::new(ClientInstance::start(client_id.clone(), config)?);
    instances.insert(client_id, Entry { instance: instance.clone(), users: 1 });
    Ok(instance)
}

/// Gives one use back; the last one stops the instance.
pub(crate) fn release(instance: &Arc<ClientInstance>) {
    {
        let mut instances = INSTANCES.lock();
        let instances = instances.get_or_insert_default();
        let Some(entry) = instances.get_mut(instance.client_id()) else { return };
        if !Arc::ptr_eq(&entry.instance, instance) {
            return;
        }
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        instances.remove(instance.client_id());
    }
    instance.shutdown();
}

/// `ip@instance[@unit]`. Without an instance name the id holds randomness, not only address and process id, which are
/// the same in every container behind a bridge (field report 1).
fn client_id(config: &ClientConfig) -> Arc<str> {
    let ip = config.client_ip.clone().unwrap_or_else(|| match net::local_ip() {
        // As Java writes it.
        std::net::IpAddr::V6(v6) => format!("[{v6}]"),
        ip => ip.to_string(),
    });
    let instance =
        config.instance_name.clone().unwrap_or_else(|| format!("{}#{:x}", std::process::id(), rng::entropy()));
    let unit = config.unit_name.as_ref().map(|unit| format!("@{unit}")).unwrap_or_default();
    Arc::from(format!("{ip}@{instance}{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clients_of_one_host_and_process_have_two_ids() {
        let config = ClientConfig { client_ip: Some("172.17.0.2".into()), ..Default::default() };
        assert_ne!(client_id(&config), client_id(&config));
    }

    #[test]
    fn a_name_given_by_the_user_is_kept() {
        let config = ClientConfig {
            client_ip: Some("10.0.0.1".into()),
            instance_name: Some("billing".into()),
            unit_name: Some("u1".into()),
            ..Default::default()
        };
        assert_eq!(&*client_id(&config), "10.0.0.1@billing@u1");
    }
}
