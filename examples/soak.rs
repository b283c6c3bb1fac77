//! Produces and consumes for a while with a fault every few seconds, and tells what was lost: nothing, if all is well.
//!
//! ```text
//! cargo run --release --example soak -- [--minutes N] [--every SECONDS] [--rate N] [--namesrv ADDR [--restart COMMAND]]
//! ```
//!
//! Members are processes of their own. By turns one is killed and replaced, one leaves in order and another joins, one is
//! stopped for a moment (all its connections go silent), and the broker restarts: the embedded one, or with `--namesrv`
//! a real one by COMMAND, else never. One message in a hundred fails at its first delivery, and one in five hundred makes
//! the listener panic. One member lives through it all; its memory and threads are printed. Needs Linux.

use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, EmbeddedCluster, Message, MessageExt,
    Producer, PushConsumer,
};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const MEMBERS: usize = 4;
/// How long after the end the last messages may take, retries after a broken broker among them.
const PATIENCE: Duration = Duration::from_secs(180);

fn main() {
    env_logger::init();
    let mut arguments = std::env::args().skip(1).peekable();
    match arguments.peek().map(String::as_str) {
        Some("member") => return member(&arguments.collect::<Vec<_>>()),
        Some("serve") => return serve(),
        _ => {}
    }
    let mut options =
        Options { minutes: 30.0, every: Duration::from_secs(5), rate: 500, name_servers: None, restart: None };
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| fail(&format!("{name} needs a value")));
        let number = || value.parse::<f64>().unwrap_or_else(|_| fail(&format!("{name}: '{value}' is not a number")));
        match name.as_str() {
            "--minutes" => options.minutes = number(),
            "--every" => options.every = Duration::from_secs_f64(number().max(0.1)),
            "--rate" => options.rate = number().max(1.0) as u64,
            "--namesrv" => options.name_servers = Some(value),
            "--restart" => options.restart = Some(value),
            _ => fail(&format!("unknown option {name}")),
        }
    }
    exit(run(&options));
}

struct Options {
    minutes: f64,
    every: Duration,
    rate: u64,
    name_servers: Option<String>,
    restart: Option<String>,
}

fn fail(text: &str) -> ! {
    eprintln!("soak: {text}");
    exit(2)
}

fn itself(arguments: &[&str]) -> Child {
    let own = std::env::current_exe().unwrap_or_else(|error| fail(&error.to_string()));
    let child = Command::new(own).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    child.unwrap_or_else(|error| fail(&format!("a process does not start: {error}")))
}

/// The embedded cluster, until standard input ends; each line of it restarts the broker.
fn serve() {
    let cluster = EmbeddedCluster::builder().max_bytes(1 << 30).delay_levels(vec!["1s"; 18].join(" ")).start();
    let cluster = cluster.unwrap_or_else(|error| fail(&error.to_string()));
    println!("{}", cluster.name_servers());
    for _ in std::io::stdin().lines().map_while(Result::ok) {
        let restarted = cluster.stop_broker("broker-a").and_then(|()| cluster.restart_broker("broker-a"));
        restarted.unwrap_or_else(|error| fail(&error.to_string()));
    }
}

/// A member of the group: tells each message that it has handled, until standard input ends.
fn member(arguments: &[String]) {
    let [_, name_servers, topic, group] = arguments else { fail("member NAMESRV TOPIC GROUP") };
    let output = Mutex::new(std::io::stdout());
    let consumer = PushConsumer::builder(group.as_str())
        .name_servers(name_servers.as_str())
        .subscribe(topic.as_str(), "*")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .heartbeat_interval(Duration::from_secs(2))
        .route_interval(Duration::from_secs(2))
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            let number = String::from_utf8_lossy(messages[0].body()).into_owned();
            let is_first = messages[0].reconsume_times() == 0;
            let value: u64 = number.parse().unwrap_or_default();
            assert!(!(is_first && value % 500 == 13), "a panic on purpose");
            if is_first && value % 100 == 7 {
                return ConsumeConcurrentlyStatus::ReconsumeLater;
            }
            let mut output = output.lock().unwrap_or_else(|error| fail(&error.to_string()));
            // Told before it is confirmed: a kill in between repeats it, and loses nothing.
            match writeln!(output, "{number}").and_then(|()| output.flush()) {
                Ok(()) => ConsumeConcurrentlyStatus::ConsumeSuccess,
                Err(_) => ConsumeConcurrentlyStatus::ReconsumeLater,
            }
        })
        .start()
        .unwrap_or_else(|error| fail(&error.to_string()));
    std::io::stdin().lines().map_while(Result::ok).for_each(drop);
    consumer.shutdown(Duration::from_secs(20));
}

/// A member's process; it ends with this one, since its input does.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
}

impl Running {
    fn start(name_servers: &str, topic: &str, group: &str, seen: &Sender<u64>) -> Self {
        let mut child = itself(&["member", name_servers, topic, group]);
        let (output, seen) = (child.stdout.take().expect("piped"), seen.clone());
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // The last line of a process that was killed may be cut.
            for number in lines.filter_map(|line| line.parse().ok()) {
                // Nobody listens any more at the end.
                let _ = seen.send(number);
            }
        });
        let input = child.stdin.take();
        Self { child, input }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        if !sent.is_ok_and(|status| status.success()) {
            eprintln!("soak: signal {name} was not sent");
        }
    }

    fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn leave(mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }

    /// Resident KiB, and threads.
    fn figures(&self) -> (u64, u64) {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        (value("VmRSS:").unwrap_or_default(), value("Threads:").unwrap_or_default())
    }
}

/// Sends numbers at a steady rate, each until it is confirmed; one that was not confirmed may arrive twice.
fn produce(name_servers: &str, topic: &str, rate: u64, stop: &AtomicBool) -> u64 {
    let producer = Producer::builder("soak-producer").name_servers(name_servers).start();
    let producer = producer.unwrap_or_else(|error| fail(&error.to_string()));
    let begun = Instant::now();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let message = Message::new(topic, number.to_string());
        while let Err(error) = producer.send(&message) {
            log::info!("message {number} is sent again: {error}");
            thread::sleep(Duration::from_millis(100));
        }
        number += 1;
        let due = Duration::from_secs_f64(number as f64 / rate as f64);
        thread::sleep(due.saturating_sub(begun.elapsed()).min(Duration::from_secs(1)));
    }
    number
}

fn run(options: &Options) -> i32 {
    let mut server = options.name_servers.is_none().then(|| itself(&["serve"]));
    let name_servers = options.name_servers.clone().unwrap_or_else(|| {
        let output = server.as_mut().and_then(|server| server.stdout.take()).expect("piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap_or_else(|error| fail(&error.to_string()));
        line.trim().to_owned()
    });
    let mut control = server.as_mut().and_then(|server| server.stdin.take());
    let id = std::process::id();
    let (topic, group) = (format!("soak_{id}"), format!("soak_group_{id}"));
    create(&name_servers, &topic);

    let (sender, seen) = channel();
    let start = || Running::start(&name_servers, &topic, &group, &sender);
    let steady = start();
    let mut others: Vec<_> = (1..MEMBERS).map(|_| start()).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let producing = {
        let (stop, name_servers, topic, rate) = (stop.clone(), name_servers.clone(), topic.clone(), options.rate);
        thread::spawn(move || produce(&name_servers, &topic, rate, &stop))
    };
    let mut tally = Tally::default();
    let (begun, length) = (Instant::now(), Duration::from_secs_f64(options.minutes * 60.0));
    let mut faults = [0; 4];
    let mut figures = Vec::new();
    while begun.elapsed() < length {
        tally.take_until(&seen, Instant::now() + options.every.min(length.saturating_sub(begun.elapsed())));
        let turn = faults.iter().sum::<usize>();
        let kind = turn % 4;
        faults[kind] += 1;
        match kind {
            0 => {
                others.remove(0).kill();
                others.push(start());
            }
            1 => {
                others.remove(0).leave();
                others.push(start());
            }
            2 => {
                others[0].signal("-STOP");
                tally.take_until(&seen, Instant::now() + options.every);
                others[0].signal("-CONT");
            }
            _ => match (&mut control, &options.restart) {
                (Some(control), _) => {
                    if let Err(error) = writeln!(control, "restart").and_then(|()| control.flush()) {
                        fail(&format!("the embedded cluster is gone: {error}"));
                    }
                }
                (None, Some(command)) => {
                    let status = Command::new("sh").args(["-c", command]).status();
                    assert!(status.is_ok_and(|status| status.success()), "'{command}' failed");
                }
                (None, None) => faults[kind] -= 1,
            },
        }
        if (kind, faults[kind]) == (3, 0) {
            // No broker to restart: the turn goes to the next kind.
            faults[0] += 1;
            others.remove(0).kill();
            others.push(start());
        }
        figures.push(steady.figures());
        let (kib, threads) = steady.figures();
        println!(
            "{:>6.0} s: {} messages, {} repeated; the steady member has {kib} KiB and {threads} threads",
            begun.elapsed().as_secs_f64(),
            tally.seen.len(),
            tally.repeated
        );
    }
    stop.store(true, Ordering::Relaxed);
    let sent = producing.join().unwrap_or_else(|_| fail("the producer panicked"));
    let limit = Instant::now() + PATIENCE;
    while (tally.seen.len() as u64) < sent && Instant::now() < limit {
        tally.take_until(&seen, Instant::now() + Duration::from_millis(200));
    }
    steady.leave();
    others.into_iter().for_each(Running::leave);
    drop(control);
    if let Some(mut server) = server {
        let _ = server.wait();
    }
    tally.report(sent, &faults, &figures)
}

fn create(name_servers: &str, topic: &str) {
    // The first message makes the topic, where brokers do that; it is none of those that are counted.
    let producer = Producer::builder("soak-producer").name_servers(name_servers).start();
    let producer = producer.unwrap_or_else(|error| fail(&error.to_string()));
    let message = Message::new(topic, "makes the topic");
    if let Err(error) = producer.send(&message) {
        fail(&format!("the topic {topic} cannot be made: {error}"));
    }
    producer.shutdown(Duration::from_secs(5));
}

#[derive(Default)]
struct Tally {
    seen: HashMap<u64, u32>,
    repeated: u64,
}

impl Tally {
    fn take_until(&mut self, seen: &Receiver<u64>, moment: Instant) {
        while let Ok(number) = seen.recv_timeout(moment.saturating_duration_since(Instant::now())) {
            let times = self.seen.entry(number).or_default();
            self.repeated += u64::from(*times > 0);
            *times += 1;
        }
    }

    fn report(&self, sent: u64, faults: &[usize; 4], figures: &[(u64, u64)]) -> i32 {
        let lost: Vec<_> = (0..sent).filter(|number| !self.seen.contains_key(number)).collect();
        println!("sent       {sent}");
        println!("lost       {} {:?}", lost.len(), &lost[..lost.len().min(10)]);
        println!("repeated   {} ({:.3} %)", self.repeated, 100.0 * self.repeated as f64 / sent.max(1) as f64);
        let [kills, leaves, silences, restarts] = faults;
        println!("faults     {kills} kills, {leaves} leaves, {silences} silences, {restarts} broker restarts");
        // The first fifth is warming up.
        let warm = figures.len() / 5;
        let (from, to) = (figures.get(warm).copied().unwrap_or_default(), figures.last().copied().unwrap_or_default());
        let most = figures.iter().map(|(kib, _)| kib).max().copied().unwrap_or_default();
        println!("memory     {} KiB when warm, {} KiB at the end, {most} KiB at the most", from.0, to.0);
        println!("threads    {} when warm, {} at the end", from.1, to.1);
        i32::from(!lost.is_empty())
    }
}
