//! Runs the examples that end by themselves or can be told to, as the README does.

mod processes;

use processes::{Outcome, example, finish};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

fn spawn(name: &str, args: &[&str]) -> Child {
    Command::new(example(name))
        .args(args)
        .env_remove("NAMESRV_ADDR")
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example starts")
}

#[track_caller]
fn run(name: &str, args: &[&str]) -> Outcome {
    finish(spawn(name, args))
}

/// The embedded cluster in a process of its own, until its input is dropped.
fn embedded(args: &[&str]) -> (Child, ChildStdin, String) {
    let mut child = spawn("embedded", args);
    let input = child.stdin.take().expect("piped");
    let mut address = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut address).expect("a line of output");
    (child, input, address.trim().to_owned())
}

#[test]
fn the_quickstart_loses_nothing_on_its_own_cluster_and_on_one_that_makes_topics_on_demand() {
    let (cluster, input, name_servers) = embedded(&["--brokers", "2"]);
    for args in [&[][..], &["--namesrv", &name_servers]] {
        let outcome = run("quickstart", args);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
        assert!(outcome.out.contains("Nothing was lost."), "{}", outcome.out);
    }
    drop(input);
    assert_eq!(finish(cluster).code, Some(0));
}

#[test]
fn the_orderly_example_holds_the_order() {
    let outcome = run("orderly", &[]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    assert!(outcome.out.contains("Every order saw its steps in order."), "{}", outcome.out);
}

#[test]
fn the_soak_loses_nothing_in_a_few_seconds_of_faults() {
    let outcome = run("soak", &["--minutes", "0.1", "--every", "1", "--rate", "200"]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    assert!(outcome.out.contains("\nlost       0 []\n"), "{}", outcome.out);
}

#[test]
fn the_producer_sends_ten_messages() {
    let (cluster, input, name_servers) = embedded(&["--topic", "orders:2"]);
    let outcome = run("producer", &[&name_servers, "orders"]);
    assert_eq!((outcome.code, outcome.out.lines().count()), (Some(0), 10), "{}{}", outcome.out, outcome.err);
    drop(input);
    let outcome = finish(cluster);
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""));
}

#[test]
fn the_lite_pull_example_reads_all_and_the_end_once_more() {
    let outcome = run("lite_pull", &[]);
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.out, outcome.err);
    assert!(outcome.out.contains("read 20 messages of 2 queues\nread the last 4 once more\n"), "{}", outcome.out);
    assert_eq!(outcome.out.matches("committed 10").count(), 2, "{}", outcome.out);
}

#[test]
fn wrong_options_end_with_code_2() {
    for (name, args) in
        [("embedded", &["--port", "x"][..]), ("embedded", &["--topic", "a:b"]), ("quickstart", &["--x"])]
    {
        let outcome = run(name, args);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{name} {args:?}: {}", outcome.err);
        assert_eq!(outcome.err.lines().count(), 1, "{name} {args:?}: {}", outcome.err);
    }
}
