//! Settings of consumer groups, and when a broker makes a group by itself.
//!
//! Kept from a real broker (`SubscriptionGroupManager`): groups it has from the start, creation by whoever looks one up
//! under a legal name. Left out: the file, attributes, groups forbidden to read a topic. The number is bounded.

use crate::protocol::body::SubscriptionGroupConfig;
use std::collections::BTreeMap;
use std::sync::Arc;

const PREDEFINED: [&str; 8] = [
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
];
/// In front of the names of the system's own groups.
const SYSTEM_PREFIX: &str = "CID_RMQ_SYS_";
/// Longest name of a group.
const MAX_NAME: usize = 120;

/// Settings of all groups on one broker.
#[derive(Debug)]
pub(crate) struct GroupConfigs {
    groups: BTreeMap<Arc<str>, SubscriptionGroupConfig>,
    auto_create: bool,
    most: usize,
}

impl GroupConfigs {
    pub(crate) fn new(auto_create: bool, most: usize) -> Self {
        let groups = PREDEFINED.iter().map(|name| (Arc::from(*name), config(name))).collect();
        Self { groups, auto_create, most }
    }

    /// The settings of a group that exists.
    pub(crate) fn get(&self, group: &str) -> Option<&SubscriptionGroupConfig> {
        self.groups.get(group)
    }

    /// The settings of a group, which is made if that is allowed.
    pub(crate) fn find(&mut self, group: &str) -> Option<&SubscriptionGroupConfig> {
        let may_create = (self.auto_create || group.starts_with(SYSTEM_PREFIX))
            && self.groups.len() < self.most
            && is_legal_name(group, MAX_NAME);
        if may_create && !self.groups.contains_key(group) {
            self.groups.insert(group.into(), config(group));
        }
        self.groups.get(group)
    }

    /// Creates a group, or changes its settings. `false` for an illegal name or a full table.
    pub(crate) fn put(&mut self, config: SubscriptionGroupConfig) -> bool {
        let known = self.groups.contains_key(&*config.group_name);
        if !is_legal_name(&config.group_name, MAX_NAME) || (!known && self.groups.len() >= self.most) {
            return false;
        }
        self.groups.insert(config.group_name.clone(), config);
        true
    }

    pub(crate) fn remove(&mut self, group: &str) -> bool {
        self.groups.remove(group).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &SubscriptionGroupConfig)> {
        self.groups.iter()
    }
}

fn config(name: &str) -> SubscriptionGroupConfig {
    SubscriptionGroupConfig { group_name: name.into(), ..Default::default() }
}

/// Whether the name is not blank, not too long, and made of ASCII letters, digits, `%`, `|`, `_` and `-`.
pub(crate) fn is_legal_name(name: &str, longest: usize) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"%|_-".contains(&byte);
    !name.is_empty() && name.len() <= longest && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_groups_with_legal_names_up_to_a_bound() {
        let mut configs = GroupConfigs::new(true, 10);
        let made = configs.find("G").unwrap();
        assert_eq!((made.retry_max_times, made.retry_queue_nums), (16, 1));
        assert!(made.consume_enable && made.notify_consumer_ids_changed_enable);
        assert!(
            configs.find("a b").is_none() && configs.find("").is_none() && configs.find(&"g".repeat(121)).is_none()
        );
        assert!(configs.find("H").is_some() && configs.find("I").is_none());
        assert!(configs.get("TOOLS_CONSUMER").is_some());
    }

    #[test]
    fn without_auto_creation_only_system_groups_are_made() {
        let mut configs = GroupConfigs::new(false, 100);
        assert!(configs.find("G").is_none());
        assert!(configs.find("CID_RMQ_SYS_X").is_some());
        assert!(configs.put(config("G")) && configs.find("G").is_some());
        assert!(!configs.put(config("a b")));
        assert!(configs.remove("G") && !configs.remove("G"));
    }
}
