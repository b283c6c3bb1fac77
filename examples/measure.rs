//! Prints figures of a consumer: how fast it reads a topic and what that costs, and what it costs when idle.
//!
//! ```text
//! cargo run --release --example measure -- consume [--namesrv ADDR] [--count N] [--size BYTES] [--batch N]
//! cargo run --release --example measure -- idle    [--namesrv ADDR] [--seconds N]
//! ```
//!
//! Without `--namesrv` an embedded cluster in a process of its own serves it, so that the figures are the consumer's
//! alone. Linux only: the figures come from `/proc/self`.

use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, EmbeddedCluster, Message, MessageExt,
    Producer, PushConsumer, Result,
};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: measure consume|idle [--namesrv ADDR] [--count N] [--size BYTES] [--batch N] [--seconds N]";

struct Options {
    name_servers: Option<String>,
    count: usize,
    size: usize,
    batch: usize,
    seconds: u64,
}

fn main() {
    env_logger::init();
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let mut options = Options { name_servers: None, count: 1_000_000, size: 256, batch: 1, seconds: 30 };
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| fail(&format!("{name} needs a value; {USAGE}")));
        let number = || value.parse().unwrap_or_else(|_| fail(&format!("{name}: '{value}' is not a number")));
        match name.as_str() {
            "--namesrv" => options.name_servers = Some(value),
            "--count" => options.count = number(),
            "--size" => options.size = number(),
            "--batch" => options.batch = number(),
            "--seconds" => options.seconds = number() as u64,
            _ => fail(&format!("unknown option {name}; {USAGE}")),
        }
    }
    let done = match what.as_str() {
        "serve" => return serve(),
        "consume" => consume(&options),
        "idle" => idle(&options),
        _ => fail(USAGE),
    };
    if let Err(error) = done {
        fail(&error.to_string());
    }
}

fn fail(text: &str) -> ! {
    eprintln!("{text}");
    std::process::exit(2)
}

/// The embedded cluster, until standard input ends.
fn serve() {
    let cluster = EmbeddedCluster::builder().max_bytes(4 << 30).max_messages(10_000_000).start();
    let cluster = cluster.unwrap_or_else(|error| fail(&error.to_string()));
    println!("{}", cluster.name_servers());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// A cluster in another process; it ends with this one.
struct Server {
    child: Option<Child>,
    name_servers: String,
}

impl Server {
    fn of(options: &Options) -> Self {
        if let Some(name_servers) = options.name_servers.clone() {
            return Self { child: None, name_servers };
        }
        let own = std::env::current_exe().unwrap_or_else(|error| fail(&error.to_string()));
        let child = Command::new(own).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| fail(&format!("the embedded cluster did not start: {error}")));
        let mut name_servers = String::new();
        let output = child.stdout.take().expect("the output is a pipe");
        if BufReader::new(output).read_line(&mut name_servers).is_err() || name_servers.trim().is_empty() {
            fail("the embedded cluster did not say where it is");
        }
        Self { child: Some(child), name_servers: name_servers.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

fn consume(options: &Options) -> Result<()> {
    let server = Server::of(options);
    let stamp = std::process::id();
    let topic = format!("measure-{stamp}-{}", options.size);
    let producer = Producer::builder("measure-producer").name_servers(&*server.name_servers).start()?;
    let body = vec![b'x'; options.size];
    let begun = Instant::now();
    let mut sent = 0;
    while sent < options.count {
        let many = 100.min(options.count - sent);
        let messages: Vec<_> = (0..many).map(|_| Message::new(&*topic, body.clone())).collect();
        producer.send_batch(&messages)?;
        sent += many;
    }
    println!("topic    {topic}");
    println!("sent     {sent} messages of {} bytes in {:.2?}", options.size, begun.elapsed());
    producer.shutdown(Duration::from_secs(3));

    let (all_there, finished) = channel();
    let seen = Arc::new(AtomicUsize::new(0));
    let (counter, expected) = (seen.clone(), options.count);
    let before = Usage::now();
    let begun = Instant::now();
    let consumer = PushConsumer::builder(format!("measure-{stamp}"))
        .name_servers(&*server.name_servers)
        .subscribe(&*topic, "*")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .consume_batch_size(options.batch)
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            if counter.fetch_add(messages.len(), Ordering::Relaxed) + messages.len() >= expected {
                let _ = all_there.send(Instant::now());
            }
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()?;
    let Ok(end) = finished.recv_timeout(Duration::from_secs(300)) else { fail("not consumed within 300 s") };
    let used = Usage::now().since(&before);
    let took = (end - begun).as_secs_f64();
    let count = seen.load(Ordering::Relaxed);
    println!("consumed {count} messages in {took:.2} s: {:.0} messages/s", count as f64 / took);
    println!(
        "cpu      {:.2} s for a million messages (user {:.2} s, system {:.2} s in all)",
        (used.user + used.system) * 1e6 / count as f64,
        used.user,
        used.system
    );
    println!("wake-ups {:.3} for a message (voluntary context switches)", used.switches as f64 / count as f64);
    println!("memory   {} KiB resident at the most, {} threads", status("VmHWM:"), status("Threads:"));
    let report = consumer.shutdown(Duration::from_secs(10));
    println!("stop     {}", if report.is_clean() { "clean" } else { "not clean" });
    Ok(())
}

fn idle(options: &Options) -> Result<()> {
    let server = Server::of(options);
    let topic = "measure-idle";
    let producer = Producer::builder("measure-producer").name_servers(&*server.name_servers).start()?;
    producer.send(&Message::new(topic, "makes the topic"))?;
    producer.shutdown(Duration::from_secs(3));
    drop(producer);
    let (seen, first) = channel();
    let consumer = PushConsumer::builder("measure-idle")
        .name_servers(&*server.name_servers)
        .subscribe(topic, "*")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .listener(move |_: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            let _ = seen.send(());
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()?;
    let _ = first.recv_timeout(Duration::from_secs(30));
    // The threads that the start needed for a moment end after half a minute.
    std::thread::sleep(Duration::from_secs(35));
    let (before, begun) = (Usage::now(), Instant::now());
    std::thread::sleep(Duration::from_secs(options.seconds));
    let used = Usage::now().since(&before);
    let seconds = begun.elapsed().as_secs_f64();
    println!("threads  {}: {}", status("Threads:"), thread_names());
    println!("memory   {} KiB resident", status("VmRSS:"));
    println!("wake-ups {:.2} a second, all threads together, over {seconds:.0} s", used.switches as f64 / seconds);
    println!("cpu      {:.3} ms a second", (used.user + used.system) * 1000.0 / seconds);
    consumer.shutdown(Duration::from_secs(5));
    Ok(())
}

/// What this process has used so far.
struct Usage {
    user: f64,
    system: f64,
    switches: u64,
}

impl Usage {
    fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name in brackets may hold blanks; what follows it does not.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        // Clock ticks of Linux are 10 ms wherever this runs.
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or_default() / 100.0;
        let switches = tasks()
            .filter_map(|task| std::fs::read_to_string(task.join("status")).ok())
            .filter_map(|text| value(&text, "voluntary_ctxt_switches:")?.parse::<u64>().ok())
            .sum();
        Self { user: ticks(11), system: ticks(12), switches }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            user: self.user - before.user,
            system: self.system - before.system,
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

fn tasks() -> impl Iterator<Item = std::path::PathBuf> {
    std::fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

fn thread_names() -> String {
    let mut names: Vec<String> = tasks()
        .filter_map(|task| std::fs::read_to_string(task.join("comm")).ok())
        .map(|name| name.trim().trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
        .collect();
    names.sort();
    let mut text = Vec::new();
    for group in names.chunk_by(|a, b| a == b) {
        text.push(format!("{} {}", group.len(), group[0]));
    }
    text.join(", ")
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()
}

fn status(name: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    value(&text, name).unwrap_or("?").to_owned()
}
