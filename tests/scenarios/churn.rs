//! Members that come and go all the time while messages flow.

use crate::support::load::Load;
use crate::support::produce::producer;
use crate::support::troupe::Troupe;
use crate::support::{Target, unique};
use rocketmq_sync::{AllocateAveragely, MessageQueue};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Plan {
    pub processes: usize,
    /// Members of each process.
    pub members: usize,
    pub queues: u32,
    /// How often the members of the group change.
    pub changes: usize,
    /// Time between two messages.
    pub every: Duration,
    /// The least time from one change to the next, so that runs of different speed meet the same load.
    pub pace: Duration,
}

/// The changes in turn; what is not possible just then gives way to the opposite.
const SCRIPT: [Kind; 10] = {
    use Kind::{Join, Kill, Leave, Revive};
    [Leave, Join, Kill, Revive, Leave, Leave, Join, Leave, Join, Join]
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One member joins.
    Join,
    /// One member leaves in an orderly way.
    Leave,
    /// A process with all its members ends by SIGKILL.
    Kill,
    /// Another starts in its place, with as many members.
    Revive,
}

/// What one change cost.
struct Change {
    kind: Kind,
    repeated: usize,
    /// Until each queue had its owner again.
    rest: Duration,
    /// Until everything was delivered that had been sent by then.
    caught_up: Duration,
}

/// What a run came to.
pub struct Figures {
    changes: Vec<Change>,
    messages: usize,
    repeated: usize,
    lost: usize,
    took: Duration,
}

/// Lets members come and go as planned, each change once the one before is settled: every queue has its owner, and what was
/// sent until then is delivered.
pub fn run(target: &dyn Target, name: &str, plan: &Plan, command: impl Fn() -> Command) -> Figures {
    let (topic, group) = (unique(&format!("churn_{name}")), unique(&format!("churn_group_{name}")));
    target.create_topic(&topic, plan.queues);
    let queues = queues_of(target, &topic);
    assert_eq!(queues.len(), plan.queues as usize);
    let options = format!(
        "--namesrv {} --group {group} --topic {topic} --from first --threads 4 --work-ms 10",
        target.name_servers()
    );
    let mut stage = Stage { troupe: Troupe::new(), places: Vec::new(), absent: BTreeSet::new(), options, turn: 0 };
    for process in 0..plan.processes {
        let place = stage.troupe.open(command());
        stage.places.push(Some(place));
        for member in 0..plan.members {
            stage.troupe.join(place, &format!("m{process}-{member}"), &stage.options);
        }
        // One process after the other: many that start at once take minutes on a small machine.
        stage.troupe.wait_for_start();
    }
    stage.settle(&group, &queues);

    let begin = Instant::now();
    let load = Load::start(target, &topic, plan.every);
    let (mut sent, mut changes) = (0, Vec::new());
    for number in 0..plan.changes {
        let (before, at) = (stage.troupe.repeated, Instant::now());
        let kind = stage.change(SCRIPT[number % SCRIPT.len()], &command);
        stage.settle(&group, &queues);
        let rest = at.elapsed();
        let new = load.sent_from(sent);
        sent += new.len();
        stage
            .troupe
            .wait_for("what was sent to be delivered", |troupe| new.iter().all(|key| troupe.delivered.contains(key)));
        let caught_up = at.elapsed();
        stage.troupe.listen_until(at + plan.pace);
        changes.push(Change { kind, repeated: stage.troupe.repeated - before, rest, caught_up });
    }
    let keys = load.stop();
    let names: Vec<_> = stage.troupe.members.keys().cloned().collect();
    stage.troupe.wait_for("the last messages", |troupe| keys.iter().all(|key| troupe.delivered.contains(key)));
    for name in names {
        stage.troupe.leave(&name);
    }
    let lost = keys.iter().filter(|key| !stage.troupe.delivered.contains(*key)).count();
    let figures =
        Figures { changes, messages: keys.len(), repeated: stage.troupe.repeated, lost, took: begin.elapsed() };
    print(&format!("churn of {name}"), plan, &[(name, &figures)]);
    figures
}

struct Stage {
    troupe: Troupe,
    /// Where each process is in the troupe; none for one that was killed.
    places: Vec<Option<usize>>,
    /// Members that are not there though their process is.
    absent: BTreeSet<String>,
    options: String,
    turn: usize,
}

impl Stage {
    /// Waits until every queue has the one owner that the strategy gives it.
    fn settle(&mut self, group: &str, queues: &Arc<[MessageQueue]>) {
        let shares = self.troupe.wait_for_shares(group, queues, |_| Box::new(AllocateAveragely));
        assert_eq!(shares.values().map(BTreeSet::len).sum::<usize>(), queues.len());
    }

    /// Changes the group as asked for, or, where that is not possible, in the opposite way; tells which it was.
    fn change(&mut self, kind: Kind, command: &impl Fn() -> Command) -> Kind {
        self.turn += 1;
        match kind {
            Kind::Kill => {
                let index = self.turn / SCRIPT.len() % self.places.len();
                let place = self.places[index].take().expect("the one before is back");
                let gone = self.troupe.kill(place);
                self.absent.extend(gone);
            }
            Kind::Revive => {
                let index = self.places.iter().position(Option::is_none).expect("one was killed");
                let place = self.troupe.open(command());
                self.places[index] = Some(place);
                let own = format!("m{index}-");
                let absent = std::mem::take(&mut self.absent);
                let (back, absent): (BTreeSet<_>, _) = absent.into_iter().partition(|name| name.starts_with(&own));
                self.absent = absent;
                for name in back {
                    self.troupe.join(place, &name, &self.options);
                }
            }
            Kind::Leave => {
                // A stride that is no divisor of the members' number visits them all.
                let nth = self.turn * 7 % self.troupe.members.len();
                let name = self.troupe.members.keys().nth(nth).expect("within the length").clone();
                self.troupe.leave(&name);
                self.absent.insert(name);
            }
            Kind::Join => {
                let Some(name) = self.absent.pop_first() else { return self.change(Kind::Leave, command) };
                let index: usize = name[1..].split_once('-').and_then(|(index, _)| index.parse().ok()).expect("m1-2");
                let place = self.places[index].expect("its process is there");
                self.troupe.join(place, &name, &self.options);
            }
        }
        kind
    }
}

impl Figures {
    /// What the library promises.
    pub fn check(&self) {
        assert_eq!(self.lost, 0, "messages were lost");
    }
}

fn queues_of(target: &dyn Target, topic: &str) -> Arc<[MessageQueue]> {
    let mut queues = producer(target).publish_queues(topic).unwrap_or_else(|error| panic!("{topic}: {error}"));
    queues.sort();
    queues.into()
}

/// Prints runs of one plan side by side, past the capture of the test harness.
pub fn print(title: &str, plan: &Plan, runs: &[(&str, &Figures)]) {
    let mut text = format!(
        "\n{title}: {} members in {} processes, {} queues, {} changes, a message every {:?}\n{:22}",
        plan.processes * plan.members,
        plan.processes,
        plan.queues,
        plan.changes,
        plan.every,
        ""
    );
    let mut rows: BTreeMap<usize, (String, Vec<String>)> = BTreeMap::new();
    for (name, figures) in runs {
        text += &format!("{name:>34}");
        let mut row = |at: usize, label: &str, cell: String| {
            rows.entry(at).or_insert_with(|| (label.to_owned(), Vec::new())).1.push(cell);
        };
        for (at, kind) in [Kind::Join, Kind::Leave, Kind::Kill, Kind::Revive].into_iter().enumerate() {
            let of_kind: Vec<_> = figures.changes.iter().filter(|change| change.kind == kind).collect();
            let repeated: usize = of_kind.iter().map(|change| change.repeated).sum();
            let worst = of_kind.iter().map(|change| change.repeated).max().unwrap_or(0);
            let median = |time: fn(&Change) -> Duration| {
                let mut times: Vec<_> = of_kind.iter().map(|&change| time(change)).collect();
                times.sort();
                times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
            };
            let (rest, caught_up) = (median(|change| change.rest), median(|change| change.caught_up));
            let label = format!("{kind:?} ({})", of_kind.len());
            let cell = format!("{repeated} / {worst}; {rest:.2} / {caught_up:.2} s");
            row(at, &label.to_lowercase(), cell);
        }
        let each = figures.repeated as f64 / figures.changes.len().max(1) as f64;
        row(4, "duplicates", format!("{} ({each:.2} a change)", figures.repeated));
        row(5, "messages", format!("{}, {} lost", figures.messages, figures.lost));
        let seconds = figures.took.as_secs_f64();
        row(6, "took", format!("{seconds:.0} s, {:.0} messages/s", figures.messages as f64 / seconds));
    }
    for (label, cells) in rows.values() {
        text += &format!("\n{label:22}");
        for cell in cells {
            text += &format!("{cell:>34}");
        }
    }
    text += "\n(by kind: duplicates in all / in the worst change; median time until each queue had its owner / all was delivered)\n";
    // Standard error itself, which `cargo test` does not hold back. A closed one is no reason to fail.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
