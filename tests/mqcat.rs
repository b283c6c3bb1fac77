//! Drives `mqcat` as scripts do: as a process, by its options, output lines, signals and exit codes.

use crossbeam::channel::{Receiver, unbounded};
use processes::{Outcome, PATIENCE, example, finish};
use rocketmq_sync::EmbeddedCluster;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Instant;

// Moments are parsed without a process; their tests run here.
#[allow(dead_code, reason = "the tool uses the rest of the module")]
#[path = "../examples/mqcat/moment.rs"]
mod moment;
mod processes;

fn mqcat(args: &[&str]) -> Command {
    let mut command = Command::new(example("mqcat"));
    command.args(args).env_remove("NAMESRV_ADDR").env_remove("RUST_LOG");
    command
}

fn events(outcome: &Outcome) -> Vec<Value> {
    outcome.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[track_caller]
fn run(args: &[&str]) -> Outcome {
    finish(
        mqcat(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mqcat starts"),
    )
}

/// A running `mqcat ... --json`, killed on drop.
struct Running {
    child: Child,
    events: Receiver<Value>,
    err: Option<JoinHandle<String>>,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut child = mqcat(args)
            .arg("--json")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("mqcat starts");
        let (sender, events) = unbounded();
        let out = BufReader::new(child.stdout.take().expect("piped"));
        thread::spawn(move || {
            for line in out.lines() {
                let line = line.expect("a line of output");
                if sender.send(serde_json::from_str(&line).expect(&line)).is_err() {
                    break;
                }
            }
        });
        let mut err = child.stderr.take().expect("piped");
        let err = thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).expect("standard error is UTF-8");
            text
        });
        Self { child, events, err: Some(err) }
    }

    /// The next event with this name; others are passed over.
    #[track_caller]
    fn next(&mut self, name: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.events.recv_deadline(deadline) {
                Ok(event) if event["event"] == name => return event,
                Ok(_) => {}
                Err(_) => panic!("no event {name}; standard error: {}", self.kill()),
            }
        }
    }

    fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().expect("a shell").success(), "{command}");
    }

    /// Waits for the end; exit status and standard error.
    #[track_caller]
    fn end(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        // The channel closes when the process does, so events that nobody reads do not matter.
        while self.events.recv_deadline(deadline).is_ok() {}
        if Instant::now() >= deadline {
            panic!("mqcat still runs; standard error: {}", self.kill());
        }
        let status = self.child.wait().expect("the exit status");
        (status, self.err.take().map(|err| err.join().expect("standard error")).unwrap_or_default())
    }

    fn kill(&mut self) -> String {
        self.child.kill().ok();
        self.err.take().map(|err| err.join().expect("standard error")).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("orders", 4).delay_levels("100ms 200ms 300ms").start().expect("the cluster starts")
}

fn produce(cluster: &EmbeddedCluster, args: &[&str]) -> Outcome {
    run(&[&["produce", "--namesrv", &cluster.name_servers(), "--topic", "orders", "--json"], args].concat())
}

fn consume(cluster: &EmbeddedCluster, args: &[&str]) -> Running {
    let name_servers = cluster.name_servers();
    let always = ["consume", "--namesrv", &name_servers, "--topic", "orders", "--from", "first"];
    Running::start(&[&always, args].concat())
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

#[track_caller]
fn assert_refused(args: &[&str], named: &str) {
    let outcome = run(args);
    assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.err);
    assert_eq!(outcome.out, "", "{args:?}");
    assert_eq!(outcome.err.lines().count(), 1, "{args:?}: {}", outcome.err);
    assert!(outcome.err.contains(named), "{args:?}: {}", outcome.err);
}

#[test]
fn a_wrong_command_line_ends_with_code_2_and_one_line_that_names_the_option() {
    let consume = ["consume", "--namesrv", "127.0.0.1:1", "--group", "g", "--topic", "t"];
    let produce = ["produce", "--namesrv", "127.0.0.1:1", "--topic", "t"];
    assert_refused(&[], "subcommand");
    assert_refused(&["swallow"], "swallow");
    assert_refused(&["consume", "--topic", "t", "--namesrv", "127.0.0.1:1"], "--group");
    assert_refused(&["consume", "--group", "g", "--namesrv", "127.0.0.1:1"], "--topic");
    assert_refused(&["consume", "--group", "g", "--topic", "t"], "--namesrv");
    assert_refused(&["produce", "--namesrv", "127.0.0.1:1"], "--topic");
    assert_refused(&["consume", "--group", "g", "--topic", "t", "--namesrv", "nowhere"], "--namesrv");
    assert_refused(&["produce", "--topic", "t", "--namesrv", "nowhere"], "--namesrv");
    assert_refused(&["produce", "--topic", "a b", "--namesrv", "127.0.0.1:1"], "--topic");
    for (more, named) in [
        (&["--colour", "red"][..], "--colour"),
        (&["--topic", "a b"], "--topic"),
        (&["--topic", "t=||"], "--topic"),
        (&["--group", "a b"], "--group"),
        (&["--threads"], "--threads"),
        (&["--threads", "many"], "--threads"),
        (&["--threads", "0"], "--threads"),
        (&["--batch", "100000"], "--batch"),
        (&["--from", "timestamp:2024"], "--from"),
        (&["--mode", "sideways"], "--mode"),
        (&["--model", "none"], "--model"),
        (&["--strategy", "GREED"], "--strategy"),
        (&["--strategy", "MACHINE_ROOM"], "--strategy"),
        (&["--strategy", "CONFIG", "--set", "config_queues=t:b"], "config_queues"),
        (&["--fail-every", "0"], "--fail-every"),
        (&["--count", "-1"], "--count"),
        (&["--duration", "0"], "--duration"),
        (&["--rebalance-ms", "soon"], "--rebalance-ms"),
        (&["--set", "pull_batch_size"], "--set"),
        (&["--set", "no_such_item=1"], "no_such_item"),
        (&["--set", "pull_batch_size=0"], "pull_batch_size"),
        (&["stray"], "stray"),
    ] {
        assert_refused(&[&consume, more].concat(), named);
    }
    for (more, named) in [
        (&["--count", "none"][..], "--count"),
        (&["--size", "1", "--body", "x"], "--size"),
        (&["--body", "x", "--stdin"], "--stdin"),
        (&["--rate", "0"], "--rate"),
        (&["--batch", "0"], "--batch"),
        (&["--queue", "-1"], "--queue"),
        (&["--queue", "0", "--sharding-key", "x"], "--sharding-key"),
        (&["--oneway", "--batch", "2"], "--oneway"),
        (&["--batch", "2", "--queue", "0"], "--batch"),
        (&["--property", "novalue"], "--property"),
    ] {
        assert_refused(&[&produce, more].concat(), named);
    }
}

#[test]
fn a_mode_that_is_not_known_is_refused() {
    assert_refused(&["consume", "--namesrv", "127.0.0.1:1", "--group", "g", "--topic", "t", "--mode", "x"], "--mode");
}

#[test]
fn help_goes_to_standard_output() {
    for (args, named) in [
        (&["--help"][..], "consume"),
        (&["consume", "--help"], "--fail-every"),
        (&["produce", "--help"], "--sharding-key"),
    ] {
        let outcome = run(args);
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(outcome.out.contains(named), "{args:?}");
    }
}

#[test]
fn what_was_produced_is_consumed_with_everything_on_it() {
    let cluster = cluster();
    let args = ["--count", "20", "--size", "64", "--tags", "new", "--keys", "k-{}", "--property", "colour=blue"];
    let outcome = produce(&cluster, &args);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let events = events(&outcome);
    let sent = named(&events, "sent");
    assert_eq!(
        sent.iter().map(|event| event["seq"].as_u64()).collect::<Vec<_>>(),
        (0..20).map(Some).collect::<Vec<_>>()
    );
    assert_eq!(sent[0]["status"], "SEND_OK");
    assert_eq!(events.last().unwrap(), &serde_json::json!({"event": "done", "sent": 20, "failed": 0}));

    let mut consumer = consume(&cluster, &["--group", "readers", "--count", "20"]);
    let started = consumer.next("started");
    assert_eq!(started["group"], "readers");
    assert!(started["client_id"].as_str().is_some_and(|id| id.contains('@')), "{started}");
    let messages: BTreeMap<String, Value> = (0..20)
        .map(|_| consumer.next("message"))
        .map(|event| (event["keys"].as_str().expect("keys").to_owned(), event))
        .collect();
    for (seq, sent) in sent.iter().enumerate() {
        let event = &messages[&format!("k-{seq}")];
        let mut body = format!("{seq} ");
        body.extend(('a'..='z').cycle().take(64 - body.len()));
        let digest: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            (&event["topic"], &event["tags"], &event["result"]),
            (&"orders".into(), &"new".into(), &"ok".into())
        );
        assert_eq!((&event["body_len"], &event["body_sha256"]), (&64.into(), &digest.into()), "{event}");
        assert_eq!(event["properties"]["colour"], "blue");
        assert_eq!(event["reconsume_times"], 0);
        for place in ["broker", "queue", "offset"] {
            assert_eq!(event[place], sent[place], "{place} of {seq}");
        }
        assert_eq!(event["unique_key"], sent["msg_id"]);
        assert!(event["born"].as_u64() > Some(1_600_000_000_000) && event["stored"].as_u64() > Some(1_600_000_000_000));
    }
    let stopped = consumer.next("stopped");
    assert_eq!((&stopped["reason"], &stopped["consumed"]), (&"count".into(), &20.into()));
    let committed: i64 = stopped["committed"]
        .as_object()
        .expect("an object")
        .iter()
        .filter(|(queue, _)| queue.starts_with("orders/"))
        .map(|(_, offset)| offset.as_i64().expect("an offset"))
        .sum();
    assert_eq!((committed, &stopped["uncommitted"]), (20, &0.into()), "{stopped}");
    let (status, err) = consumer.end();
    assert_eq!(status.code(), Some(0), "{err}");
}

#[test]
fn a_group_goes_on_where_its_last_member_stopped() {
    let cluster = cluster();
    assert_eq!(produce(&cluster, &["--count", "60"]).code, Some(0));
    let seen = |mut consumer: Running, count: usize| {
        let place = |event: Value| (event["queue"].as_i64(), event["offset"].as_i64());
        let mut seen: Vec<_> = (0..count).map(|_| place(consumer.next("message"))).collect();
        consumer.signal("TERM");
        seen.extend(consumer.events.iter().filter(|event| event["event"] == "message").map(place));
        seen
    };
    let args = ["--group", "readers", "--threads", "1", "--work-ms", "20"];
    let first = seen(consume(&cluster, &args), 10);
    let second = seen(consume(&cluster, &args), 60 - first.len());
    assert_eq!(first.len() + second.len(), 60, "no message twice");
    assert_eq!(first.into_iter().chain(second).collect::<BTreeSet<_>>().len(), 60, "every message");
}

#[test]
fn a_count_is_never_exceeded_however_many_threads_there_are() {
    let cluster = cluster();
    assert_eq!(produce(&cluster, &["--count", "60"]).code, Some(0));
    let consumer = consume(&cluster, &["--group", "readers", "--count", "7", "--threads", "8"]);
    assert_eq!(consumer.events.iter().filter(|event| event["event"] == "message").count(), 7);
}

#[test]
fn a_signal_stops_in_an_orderly_way() {
    let cluster = cluster();
    for signal in ["INT", "TERM"] {
        let mut consumer = consume(&cluster, &["--group", "readers"]);
        consumer.next("assigned");
        consumer.signal(signal);
        let stopped = consumer.next("stopped");
        assert_eq!((&stopped["reason"], &stopped["uncommitted"]), (&"signal".into(), &0.into()));
        let (status, err) = consumer.end();
        assert_eq!(status.code(), Some(0), "{err}");
    }
}

#[test]
fn a_second_signal_stops_at_once() {
    let cluster = cluster();
    assert_eq!(produce(&cluster, &["--count", "2", "--queue", "0"]).code, Some(0));
    let mut consumer = consume(&cluster, &["--group", "readers", "--threads", "1", "--work-ms", "3000"]);
    // With one thread, the listener has the second message as soon as the first one is out.
    consumer.next("message");
    consumer.signal("INT");
    consumer.signal("TERM");
    let (status, err) = consumer.end();
    assert!(matches!(status.code(), Some(130 | 143)), "{status}: {err}");
}

#[test]
fn a_message_that_asks_for_a_retry_comes_back_under_its_own_topic() {
    let cluster = cluster();
    assert_eq!(produce(&cluster, &["--count", "10", "--keys", "{}"]).code, Some(0));
    let quick = ["--group", "readers", "--fail-every", "5", "--route-ms", "100"];
    let mut consumer = consume(&cluster, &[&quick[..], &["--count", "12"]].concat());
    let messages: Vec<Value> = (0..12).map(|_| consumer.next("message")).collect();
    assert!(messages.iter().all(|event| event["topic"] == "orders"));
    let with = |result: &str, times: i64| -> BTreeSet<&str> {
        let matching = |event: &&Value| event["result"] == result && event["reconsume_times"] == times;
        messages.iter().filter(matching).map(|event| event["keys"].as_str().expect("keys")).collect()
    };
    assert_eq!(with("retry", 0).len(), 2);
    assert_eq!(with("retry", 0), with("ok", 1));
    assert_eq!(with("ok", 0).len(), 8);
}

#[test]
fn every_strategy_that_can_be_named_shares_out_the_queues() {
    let builder = EmbeddedCluster::builder().broker_names(["east-1@a"]).topic("orders", 4);
    let cluster = builder.start().expect("the cluster starts");
    let owned = |group: &str, strategy: &[&str], queues: u64| {
        let mut consumer = consume(&cluster, &[&["--group", group, "--set", "client_ip=east-2"], strategy].concat());
        // One more is the queue of the retry topic, which these strategies may leave out.
        let before = queues.max(1) - 1;
        while consumer.next("assigned")["owned"].as_u64().is_some_and(|owned| owned <= before) {}
    };
    for strategy in ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "BALANCED_STICKY", "MACHINE_ROOM_NEARBY-AVG"] {
        owned(strategy, &["--strategy", strategy], 4);
    }
    owned("room", &["--strategy", "MACHINE_ROOM", "--set", "rooms=west;east-1"], 4);
    owned("list", &["--strategy", "CONFIG", "--set", "config_queues=orders:east-1@a:0,orders:east-1@a:3"], 2);
}

#[test]
fn members_report_the_queues_that_they_get_and_give_up() {
    let cluster = cluster();
    let of_topic = |event: &Value| -> BTreeSet<i64> {
        let queues = event["queues"].as_array().expect("queues");
        queues.iter().filter(|queue| queue[0] == "orders").map(|queue| queue[2].as_i64().expect("an id")).collect()
    };
    let mut first = consume(&cluster, &["--group", "readers", "--instance", "a"]);
    let mut held = BTreeSet::new();
    while held.len() < 4 {
        held.extend(of_topic(&first.next("assigned")));
    }
    let mut second = consume(&cluster, &["--group", "readers", "--instance", "b"]);
    while held.len() > 2 {
        held = &held - &of_topic(&first.next("revoked"));
    }
    let mut others = BTreeSet::new();
    while others.len() < 2 {
        let event = second.next("assigned");
        assert!(event["owned"].as_u64() >= Some(1), "{event}");
        others.extend(of_topic(&event));
    }
    assert_eq!(held.union(&others).copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn each_way_to_produce_goes_where_it_says() {
    let cluster = cluster();
    let queues_of = |args: &[&str]| -> Vec<Value> {
        let outcome = produce(&cluster, args);
        assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.err);
        named(&events(&outcome), "sent").iter().map(|event| event["queue"].clone()).collect()
    };
    assert_eq!(queues_of(&["--count", "3", "--queue", "2"]), [2, 2, 2]);
    let sharded = queues_of(&["--count", "5", "--sharding-key", "customer-7"]);
    assert!(sharded.iter().all(|queue| queue == &sharded[0]), "{sharded:?}");
    let batched = queues_of(&["--count", "10", "--batch", "4"]);
    assert_eq!(batched.len(), 10);
    assert!(batched[..4].iter().all(|queue| queue == &batched[0]), "{batched:?}");
    assert_eq!(queues_of(&["--count", "2", "--oneway"]), [Value::Null, Value::Null]);
    assert_eq!(queues_of(&["--count", "2", "--delay-level", "1", "--rate", "50"]).len(), 2);
}

#[test]
fn a_batch_reports_each_message_at_its_own_offset() {
    let cluster = cluster();
    let outcome = produce(&cluster, &["--count", "3", "--batch", "3"]);
    let events = events(&outcome);
    let offsets: Vec<_> = named(&events, "sent").iter().map(|event| event["offset"].as_i64()).collect();
    assert_eq!(offsets, [Some(0), Some(1), Some(2)]);
    let ids: BTreeSet<_> = named(&events, "sent").iter().map(|event| event["msg_id"].to_string()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[test]
fn lines_of_standard_input_become_messages() {
    let cluster = cluster();
    let mut child = mqcat(&["produce", "--namesrv", &cluster.name_servers(), "--topic", "orders", "--stdin", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("mqcat starts");
    child.stdin.take().expect("piped").write_all("one\nzwölf\nlast".as_bytes()).expect("mqcat reads");
    let outcome = finish(child);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let mut consumer = consume(&cluster, &["--group", "readers"]);
    let digests: BTreeSet<String> =
        (0..3).map(|_| consumer.next("message")["body_sha256"].as_str().expect("a digest").to_owned()).collect();
    let expected =
        ["one", "zwölf", "last"].map(|body| Sha256::digest(body).iter().map(|b| format!("{b:02x}")).collect());
    assert_eq!(digests, BTreeSet::from(expected));
}

#[test]
fn a_message_that_cannot_be_sent_is_a_failed_event_and_exit_code_1() {
    let cluster = cluster();
    let outcome = produce(&cluster, &["--size", "5000000"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    let events = events(&outcome);
    assert_eq!(events[0]["event"], "failed");
    assert_eq!(events[0]["seq"], 0);
    assert!(events[0]["error"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(events[1], serde_json::json!({"event": "done", "sent": 0, "failed": 1}));
}

#[test]
fn a_reader_that_goes_away_stops_the_consumer_with_exit_code_1() {
    let cluster = cluster();
    assert_eq!(produce(&cluster, &["--count", "4"]).code, Some(0));
    let mut child = mqcat(&["consume", "--namesrv", &cluster.name_servers(), "--topic", "orders", "--from", "first"])
        .args(["--group", "readers", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("mqcat starts");
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("standard error is UTF-8");
    assert_eq!(child.wait().expect("the exit status").code(), Some(1), "{err}");
    assert!(err.contains("standard output"), "{err}");
}

#[test]
fn without_json_lines_are_for_people_and_standard_output_still_carries_data_only() {
    let cluster = cluster();
    let name_servers = cluster.name_servers();
    let sent =
        run(&["produce", "--namesrv", &name_servers, "--topic", "orders", "--body", "good morning", "--tags", "new"]);
    assert_eq!((sent.code, sent.out.lines().count()), (Some(0), 1), "{}", sent.err);
    assert!(sent.out.starts_with("0 SEND_OK orders/"), "{}", sent.out);
    let args = ["consume", "--namesrv", &name_servers, "--group", "readers", "--topic", "orders", "--from", "first"];
    let read = run(&[&args[..], &["--count", "1"]].concat());
    assert_eq!((read.code, read.out.lines().count()), (Some(0), 1), "{}", read.err);
    assert!(read.out.trim_end().ends_with("@0 tags=new good morning"), "{}", read.out);
    assert!(read.err.contains("stopped (count)"), "{}", read.err);
}
