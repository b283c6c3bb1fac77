//! A consumer group at work, in a few seconds: members join and leave, some messages fail and come back, none is lost.
//!
//! ```text
//! cargo run --example quickstart
//! cargo run --example quickstart -- --namesrv 127.0.0.1:9876
//! ```
//!
//! Without `--namesrv` it starts the embedded cluster. It ends by itself, with exit code 1 if a message was lost.

use crossbeam::channel::{Receiver, Sender, unbounded};
use lexopt::prelude::*;
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, EmbeddedCluster, Message, MessageExt,
    MessageQueue, Producer, PushConsumer,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const TOPIC: &str = "rocketmq-sync-quickstart";
const GROUP: &str = "rocketmq-sync-quickstart";
const MESSAGES: u64 = 3_000;
/// How many messages go out in a second.
const RATE: u64 = 500;
/// One message in so many fails at its first delivery.
const FAIL_EVERY: u64 = 100;
/// How often a line shows the progress.
const PROGRESS: Duration = Duration::from_secs(1);
/// How long a step may take before the program goes on and says so.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let name_servers = match parse() {
        Ok(name_servers) => name_servers,
        Err(error) => {
            eprintln!("quickstart: {error}; the only option is --namesrv ADDR[;ADDR...]");
            return ExitCode::from(2);
        }
    };
    match run(name_servers) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Result<Option<String>, lexopt::Error> {
    let mut name_servers = None;
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("namesrv") => name_servers = Some(parser.value()?.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(name_servers)
}

/// Whether nothing was lost.
fn run(name_servers: Option<String>) -> Result<bool, Box<dyn Error>> {
    println!("\nrocketmq-sync quickstart\n");
    let began = Instant::now();
    let (cluster, name_servers) = match name_servers {
        Some(name_servers) => (None, name_servers),
        None => {
            let cluster = EmbeddedCluster::builder().topic(TOPIC, 8).start()?;
            let name_servers = cluster.name_servers();
            (Some(cluster), name_servers)
        }
    };
    let kind =
        if cluster.is_some() { format!(" (embedded, started in {:.0?})", began.elapsed()) } else { String::new() };
    println!("  name server  {name_servers}{kind}");
    println!("  topic        {TOPIC}, {MESSAGES} messages, {RATE} a second");
    println!("  group        {GROUP}\n");

    let mut show = Show::new(began);
    let producer = Producer::builder("rocketmq-sync-quickstart-producer").name_servers(&name_servers).start()?;
    let (queues, first) = make_topic(&producer, &show.ledger)?;

    let join = |name, show: &Show| Member::join(name, &name_servers, &show.ledger.run, &show.sender);
    let mut change = Instant::now();
    let mut members = vec![join("A", &show)?, join("B", &show)?];
    show.after_change(change, "two consumers join", &members, &queues);

    let sending = send_the_rest(producer, &show.ledger, first);
    show.until_seen(MESSAGES / 4);
    change = Instant::now();
    members.push(join("C", &show)?);
    show.after_change(change, "a third one joins", &members, &queues);

    show.until_seen(MESSAGES / 2);
    change = Instant::now();
    let report = members.remove(0).consumer.shutdown(PATIENCE);
    let left = format!("A leaves: it consumed {}, and leaves {} uncommitted", report.consumed(), report.uncommitted());
    show.after_change(change, &left, &members, &queues);

    while !show.until(|_| sending.is_finished()) {}
    let failures = sending.join().map_err(|_| "the sending thread panicked")?;
    show.until_seen(MESSAGES - failures.len() as u64);
    let lag = show.until_caught_up(&members)?;
    let uncommitted: usize = members.drain(..).map(|member| member.consumer.shutdown(PATIENCE).uncommitted()).sum();
    if let Some(cluster) = cluster {
        cluster.stop();
    }
    Ok(show.summary(&failures, lag, uncommitted))
}

/// Sends the first messages, one to each broker: where the cluster creates topics on demand, each broker makes its queues
/// at its first message. Gives back the queues of the topic, and how many messages it sent.
fn make_topic(producer: &Producer, ledger: &Ledger) -> rocketmq_sync::Result<(Vec<MessageQueue>, u64)> {
    let mut queues = producer.publish_queues(TOPIC)?;
    queues.sort();
    let mut sent = 0;
    for of_broker in queues.chunk_by(|a, b| a.broker_name() == b.broker_name()) {
        producer.send_to_queue(&ledger.message(sent), &of_broker[0])?;
        sent += 1;
    }
    Ok((queues, sent))
}

/// Sends the messages from number `first` on, evenly in time. Gives back the numbers of those that could not be sent.
fn send_the_rest(producer: Producer, ledger: &Ledger, first: u64) -> JoinHandle<Vec<u64>> {
    let messages: Vec<Message> = (first..MESSAGES).map(|number| ledger.message(number)).collect();
    thread::spawn(move || {
        let began = Instant::now();
        let mut failures = Vec::new();
        for (turn, message) in (0..).zip(&messages) {
            thread::sleep((Duration::from_secs(turn) / RATE as u32).saturating_sub(began.elapsed()));
            if let Err(error) = producer.send(message) {
                eprintln!("message {} could not be sent: {error}", first + turn);
                failures.push(first + turn);
            }
        }
        producer.shutdown(PATIENCE);
        failures
    })
}

/// One delivery, as a listener reports it.
struct Delivery {
    number: u64,
    member: &'static str,
    /// The first delivery of some messages fails on purpose.
    failed: bool,
    at: Instant,
}

/// A consumer of the group.
struct Member {
    name: &'static str,
    consumer: PushConsumer,
}

impl Member {
    fn join(
        name: &'static str,
        name_servers: &str,
        run: &str,
        deliveries: &Sender<Delivery>,
    ) -> rocketmq_sync::Result<Self> {
        let (run, deliveries) = (run.to_owned(), deliveries.clone());
        let listener = move |messages: &[MessageExt], context: &mut ConsumeConcurrentlyContext| {
            for message in messages {
                let Some(number) = number_of(message, &run) else {
                    continue; // of an earlier run on the same cluster
                };
                let failed = number % FAIL_EVERY == FAIL_EVERY / 2 && message.reconsume_times() == 0;
                // The receiver lives as long as the consumers do.
                let _ = deliveries.send(Delivery { number, member: name, failed, at: Instant::now() });
                if failed {
                    context.set_delay_level(1); // the shortest delay of the broker: a second, unless it was told otherwise
                    return ConsumeConcurrentlyStatus::ReconsumeLater;
                }
            }
            ConsumeConcurrentlyStatus::ConsumeSuccess
        };
        let consumer = PushConsumer::builder(GROUP)
            .name_servers(name_servers)
            .instance_name(format!("{}-{name}", std::process::id()))
            .subscribe(TOPIC, "*")
            .consume_from(ConsumeFromWhere::FirstOffset)
            // The defaults suit clusters that run for years; a show of some seconds looks at routes and commits more often.
            .route_interval(Duration::from_secs(1))
            .persist_interval(Duration::from_secs(1))
            .listener(listener)
            .start()?;
        Ok(Self { name, consumer })
    }

    /// The held queues of the topic, without those of the group's retry topic.
    fn queues(&self) -> Vec<MessageQueue> {
        let held = self.consumer.assignment();
        held.iter().map(|state| state.queue().clone()).filter(|queue| queue.topic() == TOPIC).collect()
    }
}

fn number_of(message: &MessageExt, run: &str) -> Option<u64> {
    let (of_run, number) = std::str::from_utf8(message.body()).ok()?.split_once(' ')?;
    (of_run == run).then_some(number)?.parse().ok()
}

/// What was delivered, by message.
struct Ledger {
    /// Marks the messages of this run.
    run: String,
    seen: Vec<u32>,
    failed_at: BTreeMap<u64, Instant>,
    came_back: Vec<Duration>,
    by_member: BTreeMap<&'static str, u64>,
}

impl Ledger {
    fn message(&self, number: u64) -> Message {
        Message::new(TOPIC, format!("{} {number}", self.run))
    }

    fn enter(&mut self, delivery: &Delivery) {
        if delivery.failed {
            self.failed_at.entry(delivery.number).or_insert(delivery.at);
            return;
        }
        let Some(seen) = self.seen.get_mut(delivery.number as usize) else { return };
        *seen += 1;
        *self.by_member.entry(delivery.member).or_default() += 1;
        if let (1, Some(failed_at)) = (*seen, self.failed_at.get(&delivery.number)) {
            self.came_back.push(delivery.at - *failed_at);
        }
    }

    fn consumed(&self) -> u64 {
        self.seen.iter().filter(|times| **times > 0).count() as u64
    }
}

/// Collects deliveries and prints.
struct Show {
    began: Instant,
    ledger: Ledger,
    sender: Sender<Delivery>,
    deliveries: Receiver<Delivery>,
    next_line: Instant,
}

impl Show {
    fn new(began: Instant) -> Self {
        let (sender, deliveries) = unbounded();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ledger = Ledger {
            run: format!("{:x}", now.as_nanos()),
            seen: vec![0; MESSAGES as usize],
            failed_at: BTreeMap::new(),
            came_back: Vec::new(),
            by_member: BTreeMap::new(),
        };
        Self { began, ledger, sender, deliveries, next_line: began + PROGRESS }
    }

    /// Collects deliveries until the condition holds; `false` when nothing came for too long and it still does not.
    fn until(&mut self, mut condition: impl FnMut(&Ledger) -> bool) -> bool {
        let mut last_news = Instant::now();
        while !condition(&self.ledger) {
            if let Ok(delivery) = self.deliveries.recv_timeout(Duration::from_millis(20)) {
                self.ledger.enter(&delivery);
                self.deliveries.try_iter().for_each(|delivery| self.ledger.enter(&delivery));
                last_news = Instant::now();
            } else if last_news.elapsed() >= PATIENCE {
                return false;
            }
            if Instant::now() >= self.next_line {
                self.progress();
            }
        }
        true
    }

    fn progress(&mut self) {
        let failed = self.ledger.failed_at.len();
        let back = self.ledger.came_back.len();
        println!("{}  consumed {:>5}   failed {failed:>3}, came back {back:>3}", self.time(), self.ledger.consumed());
        self.next_line = Instant::now() + PROGRESS;
    }

    fn time(&self) -> String {
        format!("{:>6.1} s", self.began.elapsed().as_secs_f64())
    }

    fn until_seen(&mut self, count: u64) {
        if !self.until(|ledger| ledger.consumed() >= count) {
            println!("{}  no message for {PATIENCE:?}, {count} expected by now", self.time());
        }
    }

    /// Waits until the members hold all queues, each queue once and as evenly as can be, and shows who holds what.
    fn after_change(&mut self, since: Instant, what: &str, members: &[Member], queues: &[MessageQueue]) {
        println!("{}  {what}", self.time());
        self.next_line = since + PATIENCE;
        self.until(|_| shared_out(members, queues) || since.elapsed() >= PATIENCE);
        let outcome = if shared_out(members, queues) { "shared out within" } else { "not shared out evenly after" };
        println!("          {outcome} {} ms\n", since.elapsed().as_millis());
        show_table(members, queues);
        self.next_line = Instant::now() + PROGRESS;
    }

    /// Waits until the group has committed everything; what is still missing when that takes too long.
    fn until_caught_up(&mut self, members: &[Member]) -> rocketmq_sync::Result<i64> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut lag = 0;
            for member in members {
                lag += member.consumer.lag()?.iter().map(|(_, behind)| behind).sum::<i64>();
            }
            if lag == 0 || Instant::now() >= deadline {
                return Ok(lag);
            }
            let pause = Instant::now() + Duration::from_millis(100);
            self.until(|_| Instant::now() >= pause);
        }
    }

    /// Prints how it went; whether nothing was lost.
    fn summary(&mut self, failures: &[u64], lag: i64, uncommitted: usize) -> bool {
        self.deliveries.try_iter().for_each(|delivery| self.ledger.enter(&delivery));
        let ledger = &self.ledger;
        let sent = MESSAGES - failures.len() as u64;
        // What could not be sent may be stored all the same, so it counts neither way.
        let lost = (0..).zip(&ledger.seen).filter(|(number, times)| **times == 0 && !failures.contains(number)).count();
        let twice = ledger.seen.iter().filter(|times| **times > 1).count();
        let shares: Vec<String> = ledger.by_member.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let longest = ledger.came_back.iter().max().copied().unwrap_or_default();
        println!("\n  sent               {sent}");
        println!("  consumed           {}   ({})", ledger.consumed(), shares.join(", "));
        println!("  failed on purpose  {}", ledger.failed_at.len());
        println!("  came back          {}   (the slowest after {longest:.1?})", ledger.came_back.len());
        println!("  delivered twice    {twice}   (at least once is the promise)");
        println!("  lag at the end     {lag}");
        println!("  left uncommitted   {uncommitted}");
        println!("  lost               {lost}\n");
        if lost == 0 {
            println!("Nothing was lost. {:.1} s in all.\n", self.began.elapsed().as_secs_f64());
        } else {
            println!("{lost} messages were lost.\n");
        }
        lost == 0
    }
}

/// A row a member, a column a queue, the queues of each broker side by side.
fn show_table(members: &[Member], queues: &[MessageQueue]) {
    let (mut header, mut broker) = (String::new(), "");
    let mut margins = Vec::new();
    for queue in queues {
        let before = header.len();
        if queue.broker_name() != broker {
            broker = queue.broker_name();
            header += &format!("   {broker} ");
        }
        margins.push(header.len() - before);
        header += &format!(" {:>2}", queue.queue_id());
    }
    println!("        {header}");
    for member in members {
        let held = member.queues();
        let marks = queues.iter().map(|queue| if held.contains(queue) { "#" } else { "." });
        let row: String = margins.iter().zip(marks).map(|(margin, mark)| format!("{:margin$}  {mark}", "")).collect();
        println!("       {}{row}   {} queues", member.name, held.len());
    }
    println!();
}

/// Whether each queue is held once, and no member holds two more than another.
fn shared_out(members: &[Member], queues: &[MessageQueue]) -> bool {
    let held: Vec<Vec<MessageQueue>> = members.iter().map(Member::queues).collect();
    let counts = held.iter().map(Vec::len);
    let even = counts.clone().max().unwrap_or_default() - counts.min().unwrap_or_default() <= 1;
    let mut all: Vec<&MessageQueue> = held.iter().flatten().collect();
    all.sort();
    even && all.into_iter().eq(queues)
}
