//! The offset file of a broadcasting consumer, used by the Java client and ours in turn.

use crate::scenarios::broadcast::Folder;
use crate::support::crew::Crew;
use crate::support::event::Sent;
use crate::support::produce::{compare, produce};
use crate::support::{Target, unique};
use std::process::Command;

/// Our client, the Java client and ours again under one client id: each goes on where the one before it stopped.
pub fn java_reads_our_file_and_we_read_java_s(target: &dyn Target, java: impl Fn() -> Command) {
    let (topic, group, folder) = (unique("offsetfile"), unique("offsetfile_group"), Folder::new());
    target.create_topic(&topic, 4);
    let consume = folder.member(target, &group, &topic, "same");
    let mut crew = Crew::new();
    let mut all: Vec<Sent> = Vec::new();
    for (name, is_java) in [("ours", false), ("java", true), ("ours again", false), ("java again", true)] {
        all.extend(produce(target, &topic, 60));
        let place = crew.join(name, if is_java { consume.apply(java()) } else { consume.ours() });
        crew.wait_for_messages(all.len());
        crew.stop(place);
        assert_eq!(crew.members[place].seen.len(), 60, "{name} begins where the one before it stopped");
    }
    assert_eq!(compare(&all, crew.seen()), 0, "messages came twice");
}
