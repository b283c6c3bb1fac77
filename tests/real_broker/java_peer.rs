//! The official Java client: a long-lived process that takes commands, and members of consumer groups.

use crate::support::crew::{PATIENCE, read_lines};
use crate::support::event::{Sent, properties, text};
use crossbeam::channel::{Receiver, unbounded};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// `Peer serve`. It ends when its input is closed, so at the latest with this process.
pub struct JavaService {
    _child: Child,
    commands: ChildStdin,
    answers: Receiver<Option<String>>,
}

impl JavaService {
    pub fn start(class_path: &str, name_servers: &str, broker: &str, log: &Path) -> Self {
        let log = File::create(log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let mut child = java(class_path)
            .args(["serve", "--namesrv", name_servers, "--broker", broker])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("the Java peer does not start: {error}"));
        let (sender, answers) = unbounded();
        read_lines(child.stdout.take().expect("piped"), move |line| sender.send(line).is_ok());
        let commands = child.stdin.take().expect("piped");
        let mut service = Self { _child: child, commands, answers };
        let answer = service.next("its start");
        assert_eq!(answer["event"], "started", "{answer}");
        service
    }

    /// `NAME QUEUES [BROKER]`; without a broker the one that the peer was started with.
    pub fn create_topic(&mut self, words: &str) {
        self.ask(&format!("create-topic {words}"));
    }

    pub fn produce(&mut self, topic: &str, count: usize) -> Vec<Sent> {
        let answers = self.ask(&format!("produce --topic {topic} --count {count}"));
        let sent: Vec<_> = answers
            .iter()
            .map(|answer| sent(answer).unwrap_or_else(|| panic!("not a sent message: {answer}")))
            .collect();
        assert_eq!(sent.len(), count);
        sent
    }

    pub fn committed(&mut self, group: &str, topic: &str) -> BTreeMap<String, (i64, i64)> {
        let answers = self.ask(&format!("committed {group} {topic}"));
        offsets(&answers[0]["offsets"]).unwrap_or_else(|| panic!("not offsets: {answers:?}"))
    }

    /// A lite pull consumer takes so many messages, commits them and leaves; queue and offset of each.
    pub fn lite_pull(&mut self, group: &str, topic: &str, count: usize) -> Vec<(i32, i64)> {
        let answers = self.ask(&format!("lite-pull {group} {topic} {count}"));
        let one = |answer: &Value| Some((i32::try_from(answer["queue"].as_i64()?).ok()?, answer["offset"].as_i64()?));
        answers.iter().map(|answer| one(answer).unwrap_or_else(|| panic!("not a polled message: {answer}"))).collect()
    }

    /// What is answered before `done`; fails when the peer could not do it.
    fn ask(&mut self, command: &str) -> Vec<Value> {
        writeln!(self.commands, "{command}").and_then(|()| self.commands.flush()).expect("the Java peer listens");
        let mut answers = Vec::new();
        loop {
            let answer = self.next(command);
            match answer["event"].as_str() {
                Some("done") => return answers,
                Some("failed") => panic!("Java peer: {answer}"),
                _ => answers.push(answer),
            }
        }
    }

    fn next(&mut self, to: &str) -> Value {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(Some(line)) => {
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("Java peer: {error} in line: {line}"))
            }
            Ok(None) => panic!("the Java peer ended without an answer to: {to}"),
            Err(_) => panic!("the Java peer did not answer within {PATIENCE:?} to: {to}"),
        }
    }
}

fn sent(answer: &Value) -> Option<Sent> {
    Some(Sent {
        unique_key: text(&answer["msg_id"])?,
        tags: text(&answer["tags"]),
        keys: text(&answer["keys"]),
        properties: properties(answer)?,
        body_len: answer["body_len"].as_u64()?,
        body_sha256: text(&answer["body_sha256"])?,
    })
}

/// From `{"topic/broker/id": "COMMITTED END", ..}`.
fn offsets(value: &Value) -> Option<BTreeMap<String, (i64, i64)>> {
    let pair = |text: &str| {
        let (committed, end) = text.split_once(' ')?;
        Some((committed.parse().ok()?, end.parse().ok()?))
    };
    value.as_object()?.iter().map(|(queue, at)| Some((queue.clone(), pair(at.as_str()?)?))).collect()
}

/// The peer without a command. Its logs go to standard error by the configuration on the class path.
pub fn java(class_path: &str) -> Command {
    let mut command = Command::new("java");
    command.args([
        "-Xms64m",
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Drocketmq.client.logUseSlf4j=true",
    ]);
    command.args(["-cp", class_path, "Peer"]);
    command
}
