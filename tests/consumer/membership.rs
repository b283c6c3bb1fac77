//! Members come and go.

use crate::support::*;
use rocketmq_sync::{MessageQueue, PushConsumer, RebalanceEvent, RebalanceListener};
use std::collections::BTreeSet;
use std::sync::mpsc::{Sender, channel};

fn start(cluster: &rocketmq_sync::EmbeddedCluster, group: &str) -> (PushConsumer, std::sync::mpsc::Receiver<Seen>) {
    let (listener, seen) = recording(accept);
    (builder(cluster, group, "orders").listener(listener).start().unwrap(), seen)
}

/// Every queue has exactly one owner, and shares differ by one at the most.
fn is_shared_out(members: &[&PushConsumer], queues: usize) -> bool {
    let shares: Vec<Vec<MessageQueue>> = members.iter().map(|member| held(member, "orders")).collect();
    let all: BTreeSet<_> = shares.iter().flatten().collect();
    let sizes = shares.iter().map(Vec::len);
    let total: usize = sizes.clone().sum();
    all.len() == queues && total == queues && sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1
}

#[test]
fn queues_are_shared_anew_when_members_come_and_go_and_nothing_is_lost() {
    let cluster = cluster("orders", 8);
    let (first, seen_first) = start(&cluster, "g");
    wait_until("one member has all", || is_shared_out(&[&first], 8));
    let (second, seen_second) = start(&cluster, "g");
    wait_until("two members share", || is_shared_out(&[&first, &second], 8));
    let (third, seen_third) = start(&cluster, "g");
    wait_until("three members share", || is_shared_out(&[&first, &second, &third], 8));
    send(&cluster, "orders", 0..300);
    assert!(second.shutdown(LONG).is_clean());
    wait_until("two members share again", || is_shared_out(&[&first, &third], 8));
    let mut all: Vec<Seen> = Vec::new();
    wait_until("every message was seen", || {
        for seen in [&seen_first, &seen_second, &seen_third] {
            all.extend(seen.try_iter());
        }
        counts(&all).len() == 300
    });
}

struct Events(Sender<(&'static str, Vec<MessageQueue>, usize)>);

impl RebalanceListener for Events {
    fn assigned(&self, event: &RebalanceEvent) {
        let _ = self.0.send(("assigned", event.queues().to_vec(), event.owned()));
    }
    fn revoked(&self, event: &RebalanceEvent) {
        let _ = self.0.send(("revoked", event.queues().to_vec(), event.owned()));
    }
    fn lost(&self, event: &RebalanceEvent) {
        let _ = self.0.send(("lost", event.queues().to_vec(), event.owned()));
    }
}

#[test]
fn a_rebalance_listener_hears_what_comes_and_goes() {
    let cluster = cluster("orders", 4);
    let (sender, events) = channel();
    let (listener, _seen) = recording(accept);
    let consumer =
        builder(&cluster, "g", "orders").rebalance_listener(Events(sender)).listener(listener).start().unwrap();
    wait_until("all queues", || held(&consumer, "orders").len() == 4);
    let (_other, _) = start(&cluster, "g");
    let mut told = Vec::new();
    wait_until("two queues are revoked", || {
        told.extend(events.try_iter());
        told.iter().any(|(kind, ..)| *kind == "revoked")
    });
    let (_, queues, owned) = told.iter().find(|(kind, ..)| *kind == "revoked").unwrap();
    assert_eq!(queues.iter().filter(|queue| queue.topic() == "orders").count(), 2);
    assert!(*owned >= 2, "{told:?}");
    assert!(told.iter().all(|(kind, ..)| *kind != "lost"), "{told:?}");
}

#[test]
fn a_second_consumer_of_a_group_under_one_client_id_is_refused() {
    let cluster = cluster("orders", 1);
    let build = || builder(&cluster, "g", "orders").instance_name("twin").listener(recording(accept).0).start();
    let first = build().unwrap();
    let error = build().unwrap_err();
    assert!(error.to_string().contains("'g'"), "{error}");
    first.shutdown(LONG);
    build().unwrap();
}
