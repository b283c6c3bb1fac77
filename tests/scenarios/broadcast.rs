//! The broadcasting model.

use crate::support::crew::Crew;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};
use std::fs;
use std::path::PathBuf;

/// A folder for offset files that is gone when the scenario is over.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(unique("rocketmq-sync-offsets"));
        fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    pub fn member(&self, target: &dyn Target, group: &str, topic: &str, name: &str) -> Consume {
        Consume::new(target, group, topic)
            .with("--model", "broadcasting")
            .with("--instance", name)
            .with("--persist-ms", 200)
            .with("--set", "client_ip=127.0.0.1")
            .with("--set", format!("offset_store_dir={}", self.0.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Two processes see everything each, and one that is started again goes on where it stopped.
pub fn each_gets_all(target: &dyn Target) {
    let (topic, group, folder) = (unique("broadcast"), unique("broadcast_group"), Folder::new());
    target.create_topic(&topic, 4);
    let sent = produce(target, &topic, 200);
    let mut crew = Crew::new();
    let member = |name: &str| folder.member(target, &group, &topic, name).ours();
    let places = [crew.join("one", member("one")), crew.join("two", member("two"))];
    crew.wait_for("both to see all", |crew| places.iter().all(|place| crew.members[*place].seen.len() >= sent.len()));
    crew.stop(places[0]);
    let later = produce(target, &topic, 100);
    let again = crew.join("one again", member("one"));
    crew.wait_for("the later ones", |crew| {
        crew.members[again].seen.len() >= later.len() && crew.members[places[1]].seen.len() >= sent.len() + later.len()
    });
    crew.stop(again);
    crew.stop(places[1]);
    assert_eq!(compare(&sent, crew.members[places[0]].seen.iter()), 0);
    assert_eq!(compare(&later, crew.members[again].seen.iter()), 0, "it went on where it had stopped");
    assert_eq!(compare(&[sent, later].concat(), crew.members[places[1]].seen.iter()), 0);
}
