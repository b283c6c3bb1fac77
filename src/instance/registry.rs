//! Group name to client. The registry holds weak references: a client lives as long as its user's handle.

use super::role::{ConsumerRole, ProducerRole};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Rank, RwLock};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

pub(crate) struct Registry {
    roles: RwLock<Roles>,
}

#[derive(Default)]
struct Roles {
    consumers: BTreeMap<Arc<str>, Weak<dyn ConsumerRole>>,
    producers: BTreeMap<Arc<str>, Weak<dyn ProducerRole>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self { roles: RwLock::new(Rank::Registry, Roles::default()) }
    }

    /// Registers a consumer; a second one of its group on the same client id would be a twin that the broker cannot tell apart.
    pub(crate) fn add_consumer(&self, role: &Arc<dyn ConsumerRole>) -> Result<()> {
        add(&mut self.roles.write().consumers, role.group(), role, "consumer")
    }

    pub(crate) fn add_producer(&self, role: &Arc<dyn ProducerRole>) -> Result<()> {
        add(&mut self.roles.write().producers, role.group(), role, "producer")
    }

    pub(crate) fn remove_consumer(&self, group: &str) {
        self.roles.write().consumers.remove(group);
    }

    pub(crate) fn remove_producer(&self, group: &str) {
        self.roles.write().producers.remove(group);
    }

    pub(crate) fn consumer(&self, group: &str) -> Option<Arc<dyn ConsumerRole>> {
        self.roles.read().consumers.get(group)?.upgrade()
    }

    pub(crate) fn consumers(&self) -> Vec<Arc<dyn ConsumerRole>> {
        self.roles.read().consumers.values().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn producers(&self) -> Vec<Arc<dyn ProducerRole>> {
        self.roles.read().producers.values().filter_map(Weak::upgrade).collect()
    }
}

fn add<R: ?Sized>(table: &mut BTreeMap<Arc<str>, Weak<R>>, group: &Arc<str>, role: &Arc<R>, what: &str) -> Result<()> {
    if table.get(group).is_some_and(|held| held.strong_count() > 0) {
        return Err(Error::new(
            ErrorKind::State,
            format!("a {what} of group '{group}' runs under this client id already; give another instance_name"),
        ));
    }
    table.insert(group.clone(), Arc::downgrade(role));
    Ok(())
}
