//! The members of a consumer group as separate processes, and waiting for what they report.

use super::event::{Event, Queue, Seen, Stopped};
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for anything that ought to happen. It bounds a hang on a busy machine and asserts nothing.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// How long until a condition that no event announces is looked at again.
const AGAIN: Duration = Duration::from_millis(100);

pub struct Member {
    pub name: String,
    child: Child,
    pub held: BTreeSet<Queue>,
    pub seen: Vec<Seen>,
    pub log: Vec<String>,
    pub started: bool,
    pub stopped: Option<Stopped>,
    pub ended: bool,
}

impl Member {
    /// The queues of one topic that this member holds; those of the retry topic are not counted.
    pub fn held_of(&self, topic: &str) -> BTreeSet<&Queue> {
        self.held.iter().filter(|queue| queue.topic == topic).collect()
    }

    /// Whether the log or a reported problem names it.
    pub fn log_names(&self, what: &str) -> bool {
        self.log.iter().any(|line| line.contains(what))
    }
}

/// Several processes whose events come in over one channel.
pub struct Crew {
    sender: Sender<(usize, Event)>,
    receiver: Receiver<(usize, Event)>,
    pub members: Vec<Member>,
    distinct: HashSet<String>,
    total: usize,
}

impl Crew {
    pub fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self { sender, receiver, members: Vec::new(), distinct: HashSet::new(), total: 0 }
    }

    /// Starts a process and returns its place in `members` once it says that it has started.
    pub fn join(&mut self, name: &str, command: Command) -> usize {
        let place = self.launch(name, command);
        self.wait_for(&format!("{name} to start"), |crew| crew.members[place].started);
        place
    }

    /// As [`Crew::join`], without waiting.
    pub fn launch(&mut self, name: &str, mut command: Command) -> usize {
        let place = self.members.len();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: cannot start {command:?}: {error}"));
        let (output, errors) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let sender = self.sender.clone();
        read_lines(output, move |line| match line {
            Some(line) => {
                let event = Event::parse(&line).unwrap_or_else(Event::Unreadable);
                sender.send((place, event)).is_ok()
            }
            None => sender.send((place, Event::Ended)).is_ok(),
        });
        let sender = self.sender.clone();
        read_lines(errors, move |line| line.is_none_or(|line| sender.send((place, Event::Log(line))).is_ok()));
        self.members.push(Member {
            name: name.to_owned(),
            child,
            held: BTreeSet::new(),
            seen: Vec::new(),
            log: Vec::new(),
            started: false,
            stopped: None,
            ended: false,
        });
        place
    }

    /// Waits until `done` says so; it is asked after each batch of events, and every now and then, since not all that it looks
    /// at comes with events. Fails with what every member has reported.
    pub fn wait_for(&mut self, what: &str, mut done: impl FnMut(&Crew) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Ok((place, event)) = self.receiver.try_recv() {
                self.note(place, event);
            }
            if done(self) {
                return;
            }
            match self.receiver.recv_deadline(deadline.min(Instant::now() + AGAIN)) {
                Ok((place, event)) => self.note(place, event),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => panic!("waited {PATIENCE:?} for {what}\n{}", self.report()),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the crew holds a sender itself"),
            }
        }
    }

    /// Waits until so many different messages have been seen by all members together.
    pub fn wait_for_messages(&mut self, count: usize) {
        self.wait_for(&format!("{count} different messages"), |crew| crew.distinct.len() >= count);
    }

    /// Waits until the members hold all `queues` queues of the topic, each one queue at one member, in shares that differ by at most one.
    pub fn wait_for_shares(&mut self, places: &[usize], topic: &str, queues: usize) {
        self.wait_for(&format!("an even and disjoint split of {topic} among {} members", places.len()), |crew| {
            let shares: Vec<_> = places.iter().map(|&place| crew.members[place].held_of(topic)).collect();
            let sizes: Vec<_> = shares.iter().map(BTreeSet::len).collect();
            let different: BTreeSet<_> = shares.into_iter().flatten().collect();
            different.len() == queues
                && sizes.iter().sum::<usize>() == queues
                && sizes.iter().max().unwrap_or(&0) - sizes.iter().min().unwrap_or(&0) <= 1
        });
    }

    /// How many different messages have been seen.
    pub fn distinct(&self) -> usize {
        self.distinct.len()
    }

    /// How many deliveries there were, repeated ones counted.
    pub fn deliveries(&self) -> usize {
        self.total
    }

    pub fn seen(&self) -> impl Iterator<Item = &Seen> {
        self.members.iter().flat_map(|member| &member.seen)
    }

    /// Asks a member to stop, and returns what it reported. An orderly stop ends with exit code 0.
    pub fn stop(&mut self, place: usize) -> Stopped {
        let name = self.members[place].name.clone();
        let id = self.members[place].child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("the command kill is there");
        assert!(sent.success(), "{name} (process {id}) is gone before it was asked to stop\n{}", self.report());
        self.wait_for(&format!("{name} to stop"), |crew| crew.members[place].ended);
        let status = self.members[place].child.wait().expect("a child can be waited for");
        let report = self.report();
        assert!(status.success(), "{name} ended with {status}\n{report}");
        self.members[place].held.clear();
        self.members[place].stopped.clone().unwrap_or_else(|| panic!("{name} said nothing of its stop\n{report}"))
    }

    /// Ends a member with SIGKILL: it has no chance to say goodbye.
    pub fn kill(&mut self, place: usize) {
        let member = &mut self.members[place];
        member
            .child
            .kill()
            .and_then(|()| member.child.wait())
            .unwrap_or_else(|error| panic!("{}: {error}", member.name));
        self.wait_for("the end of a killed member's output", |crew| crew.members[place].ended);
        self.members[place].held.clear();
    }

    fn note(&mut self, place: usize, event: Event) {
        let member = &mut self.members[place];
        match event {
            Event::Started { .. } => member.started = true,
            Event::Assigned(queues) => member.held.extend(queues),
            Event::Released(queues) => member.held.retain(|queue| !queues.contains(queue)),
            Event::Message(seen) => {
                self.total += 1;
                if !self.distinct.contains(&seen.unique_key) {
                    self.distinct.insert(seen.unique_key.clone());
                }
                member.seen.push(*seen);
            }
            Event::Stopped(stopped) => member.stopped = Some(stopped),
            Event::Problem(text) | Event::Log(text) => member.log.push(text),
            Event::Ended => {
                member.ended = true;
                // A member that cannot start must not look like one that is slow.
                if !member.started {
                    let status = member.child.wait();
                    panic!("{} ended ({status:?}) before it had started:\n{}", member.name, member.log.join("\n"));
                }
            }
            Event::Unreadable(reason) => panic!("{} wrote what is no event: {reason}", member.name),
        }
    }

    fn report(&self) -> String {
        let mut text = format!("{} deliveries of {} messages\n", self.total, self.distinct.len());
        for member in &self.members {
            let held: Vec<_> = member.held.iter().map(ToString::to_string).collect();
            text += &format!("{}: {} messages, holds [{}]", member.name, member.seen.len(), held.join(" "));
            text += if member.ended { ", ended; log:\n" } else { "; log:\n" };
            for line in &member.log[member.log.len().saturating_sub(15)..] {
                text += &format!("    {line}\n");
            }
        }
        text
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            // Fails only for a process that is gone already.
            if member.child.kill().is_ok() {
                let _reaped = member.child.wait();
            }
        }
    }
}

/// Hands every line to `take`, then `None`; stops early when `take` says that nobody listens.
pub fn read_lines(source: impl Read + Send + 'static, mut take: impl FnMut(Option<String>) -> bool + Send + 'static) {
    thread::spawn(move || {
        for line in BufReader::new(source).lines() {
            let line = line.unwrap_or_else(|error| format!("unreadable output: {error}"));
            if !take(Some(line)) {
                return;
            }
        }
        take(None);
    });
}
