//! The embedded cluster: messages per second and time from send to listener, in one process and with the cluster as a
//! process of its own; start-up time; memory per 1,000 idle held pulls.
//!
//! `cargo bench --bench embedded`; a number as argument scales the counts. Figures are of this machine and this moment:
//! producer, cluster and consumer share its processors.

// It has more than this needs.
#[allow(dead_code)]
#[path = "../tests/processes/mod.rs"]
mod processes;

use bytes::Bytes;
use rocketmq_sync::protocol::header::PullMessageRequestHeader;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode};
use rocketmq_sync::remoting::{NoRequests, RemotingClient, RemotingConfig};
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, EmbeddedCluster, Message, MessageExt, Producer, PushConsumer,
};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const QUEUES: u32 = 8;
const SENDERS: usize = 4;
const HELD: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster in another process, which ends with its standard input.
struct Remote {
    process: Child,
    name_servers: String,
}

impl Remote {
    fn start() -> Self {
        let mut process = Command::new(processes::example("embedded"))
            .args(["--topic", &format!("bench:{QUEUES}"), "--topic", &format!("held:{HELD}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example starts");
        let mut name_servers = String::new();
        let output = process.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut name_servers).expect("it tells its address");
        Self { process, name_servers: name_servers.trim().to_owned() }
    }

    /// Resident memory in bytes, where the system tells.
    fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().ok();
    }
}

/// A consumer whose listener reports when it has seen what.
fn consumer(name_servers: &str, group: &str) -> (PushConsumer, Receiver<(String, Instant)>) {
    let (sender, seen) = channel();
    let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        for message in messages {
            let text = String::from_utf8_lossy(message.body()).into_owned();
            // The receiver is gone when its measurement is over.
            sender.send((text, Instant::now())).ok();
        }
        ConsumeConcurrentlyStatus::ConsumeSuccess
    };
    let consumer = PushConsumer::builder(group).name_servers(name_servers).subscribe("bench", "*").listener(listener);
    (consumer.start().expect("the consumer starts"), seen)
}

fn producer(name_servers: &str) -> Producer {
    Producer::builder("bench").name_servers(name_servers).start().expect("the producer starts")
}

fn traffic(what: &str, name_servers: &str, scale: usize) {
    let (_consumer, seen) = consumer(name_servers, &format!("group-{}", what.replace(' ', "-")));
    let producer = producer(name_servers);
    // The first message waits until the consumer has its queues.
    producer.send(&Message::new("bench", "first")).expect("sent");
    seen.recv_timeout(PATIENCE).expect("the consumer works");

    let latencies = 2000 * scale;
    let mut micros: Vec<u128> = (0..latencies)
        .map(|_| {
            let start = Instant::now();
            producer.send(&Message::new("bench", "one")).expect("sent");
            let (_, at) = seen.recv_timeout(PATIENCE).expect("seen");
            at.duration_since(start).as_micros()
        })
        .collect();
    micros.sort_unstable();
    let (p50, p99) = (micros[latencies / 2], micros[latencies * 99 / 100]);

    let each = 5000 * scale;
    let body = Bytes::from(vec![b'x'; 256]);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                for _ in 0..each {
                    producer.send(&Message::new("bench", body.clone())).expect("sent");
                }
            });
        }
        (0..each * SENDERS).for_each(|_| drop(seen.recv_timeout(PATIENCE).expect("seen")));
    });
    let rate = (each * SENDERS) as f64 / start.elapsed().as_secs_f64();
    println!("{what:32} {rate:9.0} messages/s of 256 bytes, {p50:6} us p50, {p99:6} us p99 from send to listener");
}

fn start_up() {
    let mut micros: Vec<u128> = (0..50)
        .map(|_| {
            let start = Instant::now();
            let cluster = EmbeddedCluster::builder().topic("bench", QUEUES).start().expect("it starts");
            let took = start.elapsed().as_micros();
            drop(cluster);
            took
        })
        .collect();
    micros.sort_unstable();
    println!("{:32} {:9} us p50, {} us at most", "start of a cluster", micros[25], micros[49]);
}

fn held_pulls(remote: &Remote) {
    let admin = producer(&remote.name_servers);
    // Its answer names the broker's address by the id of the message.
    let sent = admin.send(&Message::new("bench", "where")).expect("sent");
    let (address, _) =
        rocketmq_sync::message::id::parse_offset_message_id(sent.offset_msg_id()).expect("an id of the broker");
    let address: Arc<str> = address.to_string().into();
    let config = RemotingConfig { max_pending: HELD + 10, ..RemotingConfig::default() };
    let client = RemotingClient::start("held", config, Arc::new(NoRequests)).expect("it starts");
    let before = remote.memory();
    for queue_id in 0..HELD {
        let header = PullMessageRequestHeader {
            consumer_group: "a-group-of-usual-length",
            topic: "held",
            queue_id: queue_id as i32,
            queue_offset: 0,
            max_msg_nums: 32,
            sys_flag: 6,
            commit_offset: 0,
            suspend_timeout_millis: 60_000,
            subscription: Some("*"),
            sub_version: 0,
            expression_type: Some("TAG"),
            max_msg_bytes: None,
            bname: Some("broker-a"),
        };
        let request = RemotingCommand::request(RequestCode::PULL_MESSAGE, &header);
        client.invoke_async(&address, request, PATIENCE, |_| {});
    }
    // Answered on the same connection behind all pulls.
    let last = RemotingCommand::request_without_header(RequestCode::GET_BROKER_RUNTIME_INFO);
    client.invoke(&address, last, PATIENCE).expect("answered");
    match (before, remote.memory()) {
        (Some(before), Some(after)) => {
            let each = after.saturating_sub(before) / (HELD as u64 / 1000);
            println!("{:32} {:9} bytes for 1,000 of {HELD}", "idle held pulls", each);
        }
        _ => println!("{:32} the system does not tell", "idle held pulls"),
    }
}

fn main() {
    let scale = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(1);
    start_up();
    let cluster = EmbeddedCluster::builder().topic("bench", QUEUES).start().expect("it starts");
    traffic("in one process", &cluster.name_servers(), scale);
    drop(cluster);
    let remote = Remote::start();
    traffic("cluster in another process", &remote.name_servers, scale);
    drop(remote);
    held_pulls(&Remote::start());
}
