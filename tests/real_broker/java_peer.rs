//! The official Java client: a long-lived process that takes commands, and members of consumer groups.

use crate::support::crew::{PATIENCE, read_lines};
use crate::support::event::{Event, Sent};
use crossbeam::channel::{Receiver, unbounded};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

/// `Peer serve`. It ends when its input is closed, so at the latest with this process.
pub struct JavaService {
    _child: Child,
    commands: ChildStdin,
    answers: Receiver<Option<String>>,
}

impl JavaService {
    pub fn start(class_path: &str, name_servers: &str, broker: &str) -> Self {
        let mut child = java(class_path)
            .args(["serve", "--namesrv", name_servers, "--broker", broker])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("the Java peer does not start: {error}"));
        let (sender, answers) = unbounded();
        read_lines(child.stdout.take().expect("piped"), move |line| sender.send(line).is_ok());
        let commands = child.stdin.take().expect("piped");
        let mut service = Self { _child: child, commands, answers };
        assert!(matches!(service.next("its start"), Event::Started));
        service
    }

    pub fn create_topic(&mut self, name: &str, queues: u32) {
        self.ask(&format!("create-topic {name} {queues}"));
    }

    pub fn produce(&mut self, topic: &str, count: usize) -> Vec<Sent> {
        let answers = self.ask(&format!("produce --topic {topic} --count {count}"));
        let sent: Vec<_> = answers.into_iter().filter_map(|event| if let Event::Sent(one) = event { Some(*one) } else { None }).collect();
        assert_eq!(sent.len(), count);
        sent
    }

    pub fn committed(&mut self, group: &str, topic: &str) -> BTreeMap<String, (i64, i64)> {
        let answers = self.ask(&format!("committed {group} {topic}"));
        let offsets = answers.into_iter().find_map(|event| if let Event::Committed(offsets) = event { Some(offsets) } else { None });
        offsets.expect("an answer with offsets comes before `done`")
    }

    /// What is answered before `done`; fails when the peer could not do it.
    fn ask(&mut self, command: &str) -> Vec<Event> {
        writeln!(self.commands, "{command}").and_then(|()| self.commands.flush()).expect("the Java peer listens");
        let mut answers = Vec::new();
        loop {
            match self.next(command) {
                Event::Done => return answers,
                Event::Failed(error) => panic!("Java peer: {error}"),
                other => answers.push(other),
            }
        }
    }

    fn next(&mut self, to: &str) -> Event {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(Some(line)) => Event::parse(&line).unwrap_or_else(|error| panic!("Java peer: {error}")),
            Ok(None) => panic!("the Java peer ended without an answer to: {to}"),
            Err(_) => panic!("the Java peer did not answer within {PATIENCE:?} to: {to}"),
        }
    }
}

/// The peer without a command. Its logs go to standard error by the configuration on the class path.
pub fn java(class_path: &str) -> Command {
    let mut command = Command::new("java");
    command.args(["-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Drocketmq.client.logUseSlf4j=true"]);
    command.args(["-cp", class_path, "Peer"]);
    command
}
