use crate::support::crew::{Crew, PATIENCE};
use crate::support::event::Sent;
use crate::support::mqcat::Consume;
use crate::support::produce::{compare, produce, producer, send_until_taken};
use crate::support::{Target, unique};
use std::collections::HashSet;

/// Routes are asked for often, so that recovery is not a matter of half-minute rounds.
const ROUTE_MS: u64 = 500;

pub fn broker_restarts(target: &dyn Target) {
    let (topic, group) = (unique("broker"), unique("broker_group"));
    target.create_topic(&topic, 4);
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic).with("--route-ms", ROUTE_MS).with("--heartbeat-ms", 1_000);
    let places = [crew.join("first", consume.ours()), crew.join("second", consume.ours())];
    crew.wait_for_shares(&places, &topic, 4);
    let before = produce(target, &topic, 200);
    crew.wait_for_messages(before.len());

    let producer = producer(target);
    target.stop_broker();
    let broker = target.broker_address();
    crew.wait_for("both logs to name the broker", |crew| crew.members.iter().all(|member| member.log_names(&broker)));
    target.start_broker();
    let after: Vec<_> = (0..100).map(|_| send_until_taken(&producer, &topic, "After", PATIENCE)).collect();
    wait_for_all(&mut crew, &before, &after);
    crew.wait_for_shares(&places, &topic, 4);
}

pub fn name_server_away_at_start(target: &dyn Target) {
    let (topic, group) = (unique("early"), unique("early_group"));
    target.create_topic(&topic, 4);
    let sent = produce(target, &topic, 50);
    target.stop_name_server();
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic).with("--route-ms", ROUTE_MS);
    let place = crew.launch("early", consume.ours());
    let name_server = target.name_servers();
    crew.wait_for("the log to name the name server", |crew| crew.members[place].log_names(&name_server));
    target.start_name_server();
    crew.wait_for_shares(&[place], &topic, 4);
    crew.wait_for_messages(sent.len());
    crew.stop(place);
    assert_eq!(compare(&sent, crew.seen()), 0, "messages came twice");
}

pub fn name_server_away_later(target: &dyn Target) {
    let (topic, group) = (unique("later"), unique("later_group"));
    target.create_topic(&topic, 4);
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic).with("--route-ms", ROUTE_MS).with("--heartbeat-ms", 1_000);
    let first = crew.join("first", consume.ours());
    crew.wait_for_shares(&[first], &topic, 4);
    let producer = producer(target);
    let mut sent = vec![send_until_taken(&producer, &topic, "Before", PATIENCE)];
    crew.wait_for_messages(sent.len());

    target.stop_name_server();
    let name_server = target.name_servers();
    crew.wait_for("the log to name the name server", |crew| crew.members[first].log_names(&name_server));
    // Producer and consumer know the route already and need nobody else.
    sent.extend((0..20).map(|_| send_until_taken(&producer, &topic, "Meanwhile", PATIENCE)));
    wait_for_all(&mut crew, &sent, &[]);
    target.start_name_server();
    let second = crew.join("second", consume.ours());
    crew.wait_for_shares(&[first, second], &topic, 4);
    sent.extend((0..20).map(|_| send_until_taken(&producer, &topic, "Afterwards", PATIENCE)));
    wait_for_all(&mut crew, &sent, &[]);
}

/// The topic is created by the first message that is sent to it.
pub fn topic_appears_later(target: &dyn Target) {
    let (topic, group) = (unique("appears"), unique("appears_group"));
    let mut crew = Crew::new();
    let consume = Consume::new(target, &group, &topic).with("--route-ms", ROUTE_MS);
    let place = crew.join("waiting", consume.ours());
    crew.wait_for("the log to name the topic", |crew| crew.members[place].log_names(&topic));
    let sent: Vec<_> = produce(target, &topic, 100);
    crew.wait_for_messages(sent.len());
    crew.stop(place);
    assert_eq!(compare(&sent, crew.seen()), 0, "messages came twice");
}

/// A send that failed may have been stored all the same, so messages beyond these may come.
fn wait_for_all(crew: &mut Crew, before: &[Sent], after: &[Sent]) {
    let mut missing: HashSet<_> = before.iter().chain(after).map(|one| one.unique_key.clone()).collect();
    crew.wait_for("all messages that a broker has taken", |crew| {
        for one in crew.seen() {
            missing.remove(&one.unique_key);
        }
        missing.is_empty()
    });
}
