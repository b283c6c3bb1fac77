//! Many clients at once. What is checked holds in every order in which their requests arrive.

use crate::support::{PATIENCE, Peer, address, body, eventually, heartbeat, peer, pull_header, pulled};
use crossbeam::channel::Receiver;
use rocketmq_sync::protocol::RemotingCommand;
use rocketmq_sync::protocol::body::ConsumerData;
use rocketmq_sync::protocol::header::{PullMessageRequestHeader, UnregisterClientRequestHeader};
use rocketmq_sync::{EmbeddedCluster, RequestCode};
use std::collections::HashMap;
use std::thread;

const CLIENTS: usize = 200;
const GROUPS: usize = 1000;
/// Members of each group.
const MEMBERS: [usize; 3] = [0, 67, 133];
const ROUNDS: usize = 3;

fn members(group: usize) -> impl Iterator<Item = usize> {
    MEMBERS.into_iter().map(move |step| (group + step) % CLIENTS)
}

/// The groups of a client in one heartbeat.
fn join(client: &Peer, number: usize) {
    let mut beat = heartbeat(&format!("c{number}"), "", &["T"]);
    let one = beat.consumer_data_set.remove(0);
    let groups = (0..GROUPS).filter(|group| members(*group).any(|member| member == number));
    let of = |group: usize| ConsumerData { group_name: format!("G{group}").into(), ..one.clone() };
    beat.consumer_data_set = groups.map(of).collect();
    client.beat(&beat);
}

fn leave(client: &Peer, group: usize) {
    let name = format!("G{group}");
    let header = UnregisterClientRequestHeader { client_id: "any", producer_group: None, consumer_group: Some(&name) };
    client.call(RequestCode::UNREGISTER_CLIENT, &header);
}

/// Lets a few threads work through all clients at once.
fn at_once(clients: &[Peer], work: impl Fn(usize, &Peer) + Sync) {
    thread::scope(|scope| {
        for (part, clients) in clients.chunks(CLIENTS / 8).enumerate() {
            let work = &work;
            scope.spawn(move || {
                for (at, client) in clients.iter().enumerate() {
                    work(part * (CLIENTS / 8) + at, client);
                }
            });
        }
    });
}

fn wait_for_message(client: &Peer, queue_id: usize, offset: usize) -> Receiver<RemotingCommand> {
    let header = PullMessageRequestHeader {
        sys_flag: 6,
        queue_id: queue_id as i32,
        queue_offset: offset as i64,
        suspend_timeout_millis: 60_000,
        ..pull_header("READER", "T")
    };
    client.start(RemotingCommand::request(RequestCode::PULL_MESSAGE, &header))
}

#[test]
fn notices_reach_everyone_and_no_held_pull_is_forgotten_while_200_clients_come_and_go() {
    let cluster = EmbeddedCluster::builder().topic("T", CLIENTS as u32).start().unwrap();
    let clients: Vec<Peer> = (0..CLIENTS).map(|_| Peer::new(address(&cluster))).collect();
    let producer = peer(&cluster);
    at_once(&clients, |number, client| join(client, number));

    // Each round: everybody waits for a message, one member of every group leaves and comes back, messages are sent.
    for round in 0..ROUNDS {
        thread::scope(|scope| {
            let waiting: Vec<_> =
                clients.iter().enumerate().map(|(number, client)| wait_for_message(client, number, round)).collect();
            let clients = &clients;
            scope.spawn(move || {
                at_once(clients, |number, client| {
                    let own = (0..GROUPS).filter(|group| members(*group).nth(round) == Some(number));
                    own.for_each(|group| leave(client, group));
                    join(client, number);
                });
            });
            for queue in 0..CLIENTS {
                producer.send("T", queue as i32, &format!("{round}-{queue}"), &[]);
            }
            for (queue, answer) in waiting.into_iter().enumerate() {
                let answer = answer.recv_timeout(PATIENCE).expect("no held pull is forgotten");
                let (_, messages) = pulled(&answer);
                assert_eq!(messages.iter().map(body).collect::<Vec<_>>(), [format!("{round}-{queue}")]);
            }
        });
    }

    // The first members joined with 1 + 2 + 3 notices a group. In each round a leave told two, and a return three.
    let mut heard: HashMap<String, usize> = HashMap::new();
    let expected = 6 + ROUNDS * 5;
    eventually("all notices are there", || {
        for request in clients.iter().flat_map(|client| client.pushed.try_iter()) {
            assert_eq!(request.request_code(), RequestCode::NOTIFY_CONSUMER_IDS_CHANGED);
            *heard.entry(request.ext_fields.get("consumerGroup").unwrap().to_owned()).or_default() += 1;
        }
        heard.len() == GROUPS && heard.values().all(|count| *count >= expected)
    });
    assert!(heard.values().all(|count| *count == expected), "and none comes twice");
}
