//! Many members in few processes: they join and leave by command, and a process that is killed takes its members with it.

use super::crew::{PATIENCE, read_lines};
use super::event::{Event, Queue};
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use rocketmq_sync::{AllocateInput, AllocateMessageQueueStrategy, Members, MessageQueue};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

struct Process {
    child: Child,
    commands: ChildStdin,
    log: Vec<String>,
    /// Killed by us.
    killed: bool,
    ended: bool,
}

pub struct Member {
    process: usize,
    /// Known once it has started.
    pub client_id: Option<String>,
    pub held: BTreeSet<Queue>,
    stopped: bool,
}

enum Line {
    Event(String),
    Log(String),
    End,
}

pub struct Troupe {
    sender: Sender<(usize, Line)>,
    receiver: Receiver<(usize, Line)>,
    processes: Vec<Process>,
    pub members: BTreeMap<String, Member>,
    /// Unique keys of what was delivered.
    pub delivered: HashSet<String>,
    /// Deliveries of messages that had been delivered before.
    pub repeated: usize,
}

impl Troupe {
    pub fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self {
            sender,
            receiver,
            processes: Vec::new(),
            members: BTreeMap::new(),
            delivered: HashSet::new(),
            repeated: 0,
        }
    }

    /// Starts a process without members; gives its place.
    pub fn open(&mut self, mut command: Command) -> usize {
        let place = self.processes.len();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let sender = self.sender.clone();
        read_lines(child.stdout.take().expect("piped"), move |line| {
            sender.send((place, line.map_or(Line::End, Line::Event))).is_ok()
        });
        let sender = self.sender.clone();
        read_lines(child.stderr.take().expect("piped"), move |line| {
            line.is_none_or(|line| sender.send((place, Line::Log(line))).is_ok())
        });
        let commands = child.stdin.take().expect("piped");
        self.processes.push(Process { child, commands, log: Vec::new(), killed: false, ended: false });
        place
    }

    /// Lets a member join, with the options of `mqcat consume`; it joins in its own time.
    pub fn join(&mut self, process: usize, name: &str, options: &str) {
        let member = Member { process, client_id: None, held: BTreeSet::new(), stopped: false };
        assert!(self.members.insert(name.to_owned(), member).is_none(), "{name} is a member already");
        self.command(process, &format!("join {name} {options}"));
    }

    /// Lets a member leave in an orderly way, and returns when it has.
    pub fn leave(&mut self, name: &str) {
        self.command(self.members[name].process, &format!("leave {name}"));
        self.wait_for(&format!("{name} to leave"), |troupe| troupe.members[name].stopped);
        self.members.remove(name);
    }

    /// Ends a process with SIGKILL; gives the names of the members that went with it.
    pub fn kill(&mut self, place: usize) -> Vec<String> {
        let process = &mut self.processes[place];
        process.killed = true;
        process.child.kill().and_then(|()| process.child.wait()).unwrap_or_else(|error| panic!("{error}"));
        self.wait_for("the end of a killed process's output", |troupe| troupe.processes[place].ended);
        let gone: Vec<_> = self.members_of(place);
        self.members.retain(|_, member| member.process != place);
        gone
    }

    pub fn members_of(&self, process: usize) -> Vec<String> {
        self.members.iter().filter(|(_, member)| member.process == process).map(|(name, _)| name.clone()).collect()
    }

    /// Waits until all members say that they have started.
    pub fn wait_for_start(&mut self) {
        self.wait_for("all members to start", |troupe| {
            troupe.members.values().all(|member| member.client_id.is_some())
        });
    }

    /// Waits until every member holds just the queues that its strategy gives it by the library's own computation.
    /// Returns those shares.
    pub fn wait_for_shares(
        &mut self,
        group: &str,
        queues: &Arc<[MessageQueue]>,
        strategy_of: impl Fn(&str) -> Box<dyn AllocateMessageQueueStrategy>,
    ) -> BTreeMap<String, BTreeSet<Queue>> {
        let what = format!("{} members to hold what is theirs", self.members.len());
        let topic = queues[0].topic();
        self.wait_for_start();
        let id_of = |member: &Member| member.client_id.clone().expect("it has started");
        let ids = Arc::new(Members::new(self.members.values().map(|member| id_of(member).into()).collect()));
        let share = |name: &String, member: &Member| {
            let input_id = id_of(member);
            let input = AllocateInput::new(group, &input_id, queues, &ids);
            let share = input.ask(&*strategy_of(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
            share.iter(queues).map(Queue::from).collect::<BTreeSet<_>>()
        };
        let shares: BTreeMap<_, _> =
            self.members.iter().map(|(name, member)| (name.clone(), share(name, member))).collect();
        self.wait_for(&what, |troupe| {
            troupe
                .members
                .iter()
                .all(|(name, member)| member.held.iter().filter(|queue| queue.topic == topic).eq(&shares[name]))
        });
        shares
    }

    /// Waits until `done` says so; it is asked after each batch of events. Fails with what every member holds.
    pub fn wait_for(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Ok((place, line)) = self.receiver.try_recv() {
                self.note(place, line);
            }
            if done(self) {
                return;
            }
            match self.receiver.recv_deadline(deadline) {
                Ok((place, line)) => self.note(place, line),
                Err(RecvTimeoutError::Timeout) => panic!("waited {PATIENCE:?} for {what}\n{}", self.report()),
                Err(RecvTimeoutError::Disconnected) => unreachable!("the troupe holds a sender itself"),
            }
        }
    }

    /// Takes in events until this moment.
    pub fn listen_until(&mut self, moment: Instant) {
        while let Ok((place, line)) = self.receiver.recv_deadline(moment) {
            self.note(place, line);
        }
    }

    fn command(&mut self, process: usize, command: &str) {
        let commands = &mut self.processes[process].commands;
        writeln!(commands, "{command}")
            .and_then(|()| commands.flush())
            .unwrap_or_else(|error| panic!("{command}: {error}\n{}", self.report()));
    }

    fn note(&mut self, place: usize, line: Line) {
        let process = &mut self.processes[place];
        let (name, event) = match line {
            Line::Log(line) => return process.log.push(line),
            Line::End => {
                process.ended = true;
                assert!(process.killed, "a process has ended by itself:\n{}", process.log.join("\n"));
                return;
            }
            Line::Event(line) => match Event::parse_with_member(&line) {
                Ok((Some(name), event)) => (name, event),
                Ok((None, _)) => panic!("an event without a member: {line}"),
                // The last line of a killed process may be cut.
                Err(_) if process.killed => return,
                Err(error) => panic!("{error}"),
            },
        };
        if let Event::Message(seen) = &event {
            self.repeated += usize::from(!self.delivered.insert(seen.unique_key.clone()));
            return;
        }
        let Some(member) = self.members.get_mut(&name).filter(|member| member.process == place) else { return };
        match event {
            Event::Started { client_id } => member.client_id = Some(client_id),
            Event::Assigned(queues) => member.held.extend(queues),
            Event::Released(queues) => member.held.retain(|queue| !queues.contains(queue)),
            Event::Stopped(_) => member.stopped = true,
            Event::Problem(text) => process.log.push(format!("{name}: {text}")),
            Event::Message(_) | Event::Unreadable(_) | Event::Log(_) | Event::Ended => {}
        }
    }

    fn report(&self) -> String {
        let mut text = format!("{} messages delivered, {} repeated\n", self.delivered.len(), self.repeated);
        for (name, member) in &self.members {
            let held: Vec<_> = member.held.iter().map(ToString::to_string).collect();
            text += &format!("{name} ({:?}) holds [{}]\n", member.client_id, held.join(" "));
        }
        for process in self.processes.iter().filter(|process| !process.killed) {
            text += &format!("log of process {}:\n", process.child.id());
            for line in &process.log[process.log.len().saturating_sub(15)..] {
                text += &format!("    {line}\n");
            }
        }
        text
    }
}

impl Drop for Troupe {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // Fails only for a process that is gone already.
            if process.child.kill().is_ok() {
                let _reaped = process.child.wait();
            }
        }
    }
}

impl From<&MessageQueue> for Queue {
    fn from(queue: &MessageQueue) -> Self {
        Self { topic: queue.topic().into(), broker: queue.broker_name().into(), id: queue.queue_id().into() }
    }
}
