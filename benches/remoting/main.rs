//! Round trips over loopback: one client and one server of the remoting layer in this process, each with its one I/O
//! thread. Prints calls per second and CPU time per call, both sides together.
//!
//! `cargo bench --bench remoting`; a number as argument scales the counts.

use bytes::Bytes;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::{
    ConnectionHandle, Dispatch, NoRequests, RemotingClient, RemotingConfig, RemotingServer, RequestProcessor,
};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Answers with as many bytes as the request's remark says.
struct Answers {
    body: Bytes,
}

impl RequestProcessor for Answers {
    fn process(&self, _: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let length = request.remark.and_then(|remark| remark.parse().ok()).unwrap_or(0);
        Some(RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(self.body.slice(..length)))
    }
}

fn request(answer_bytes: usize) -> RemotingCommand {
    let mut request = RemotingCommand::request_without_header(RequestCode::PULL_MESSAGE);
    for (key, value) in [("consumerGroup", "group"), ("topic", "topic"), ("queueId", "3"), ("queueOffset", "123456")] {
        request.ext_fields.put(key, value);
    }
    request.remark = Some(answer_bytes.to_string());
    request
}

/// User and system time of this process in seconds, where the system tells.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}

fn measure(what: &str, calls: usize, run: impl FnOnce()) {
    let (cpu, start) = (cpu_seconds(), Instant::now());
    run();
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds().zip(cpu).map(|(after, before)| (after - before) / calls as f64 * 1e6);
    println!(
        "{what:<58} {:>9.0} calls/s  {:>7.2} us/call  {:>6.2} us CPU/call",
        calls as f64 / seconds,
        seconds / calls as f64 * 1e6,
        cpu.unwrap_or(f64::NAN)
    );
}

fn blocking(client: &Arc<RemotingClient>, address: &Arc<str>, threads: usize, calls: usize, bytes: usize) {
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let (client, address) = (Arc::clone(client), Arc::clone(address));
            std::thread::spawn(move || {
                for _ in 0..calls / threads {
                    let answer = client.invoke(&address, request(bytes), TIMEOUT).expect("an answer");
                    assert_eq!(answer.body.len(), bytes);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
}

fn pipelined(client: &Arc<RemotingClient>, address: &Arc<str>, window: usize, calls: usize, bytes: usize) {
    let (tx, rx) = sync_channel(window);
    for started in 0..calls + window {
        if started >= window {
            rx.recv().expect("an outcome");
        }
        if started < calls {
            let tx = tx.clone();
            client.invoke_async(address, request(bytes), TIMEOUT, move |outcome| {
                assert_eq!(outcome.expect("an answer").body.len(), bytes);
                tx.send(()).expect("the bench listens");
            });
        }
    }
}

fn main() {
    // `cargo test` runs benches as well, with `--test`: then a few calls show that they work.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let scale =
        std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(if is_test { 0.001 } else { 1.0 });
    let times = |calls: usize| ((calls as f64 * scale) as usize).max(64);
    for dispatch in [Dispatch::Inline, Dispatch::Pool(2)] {
        let answers = Arc::new(Answers { body: Bytes::from(vec![7; 1 << 20]) });
        let bind = [([127, 0, 0, 1], 0).into()];
        let server =
            RemotingServer::start("srv", &bind, RemotingConfig::default(), answers, dispatch).expect("a server");
        let address: Arc<str> = server.local_addrs()[0].to_string().into();
        let client = RemotingClient::start("cli", RemotingConfig::default(), Arc::new(NoRequests)).expect("a client");
        let client = Arc::new(client);
        println!("server: {dispatch:?}");
        blocking(&client, &address, 1, times(1000), 0); // warm
        let n = times(50_000);
        measure("blocking, 1 caller, empty answer", n, || blocking(&client, &address, 1, n, 0));
        measure("blocking, 8 callers, empty answer", n, || blocking(&client, &address, 8, n, 0));
        let n = times(300_000);
        measure("callbacks, 1000 under way, empty answer", n, || pipelined(&client, &address, 1000, n, 0));
        let n = times(20_000);
        measure("blocking, 1 caller, 42 KiB answer (a full pull)", n, || blocking(&client, &address, 1, n, 42 << 10));
        measure("callbacks, 16 under way, 42 KiB answer", n, || pipelined(&client, &address, 16, n, 42 << 10));
        let n = times(2_000);
        measure("callbacks, 16 under way, 1 MiB answer", n, || pipelined(&client, &address, 16, n, 1 << 20));
        println!("client {:?}", client.stats());
    }
}
