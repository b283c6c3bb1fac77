//! `mqcat assign`: how a group would share queues, and what moves when a member comes or goes. No cluster is asked.

use crate::assign_options::{self, AssignOptions};
use crate::assign_plan::{Change, Plan};
use crate::assign_svg;
use crate::failure::Failure;
use rocketmq_sync::MessageQueue;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// Wider grids give way to lists: nobody can read them, and terminals break their lines.
const WIDEST_GRID: usize = 160;

pub fn run(parser: &mut lexopt::Parser) -> Result<(), Failure> {
    let Some(options) = assign_options::parse(parser)? else {
        print!("{}", assign_options::HELP);
        return Ok(());
    };
    let plans = plans(&options)?;
    let text: Vec<String> = plans.iter().map(describe).collect();
    std::io::stdout()
        .write_all(text.join("\n").as_bytes())
        .map_err(|error| Failure::Failed(format!("standard output: {error}")))?;
    if let Some(file) = &options.svg {
        std::fs::write(file, assign_svg::picture(&plans))
            .map_err(|error| Failure::Failed(format!("--svg {}: {error}", file.display())))?;
    }
    Ok(())
}

/// One for each strategy and topic: topics are shared out each by itself.
fn plans(options: &AssignOptions) -> Result<Vec<Plan>, Failure> {
    let mut topics: BTreeMap<&str, Vec<MessageQueue>> = BTreeMap::new();
    for queue in &options.queues {
        topics.entry(queue.topic()).or_default().push(queue.clone());
    }
    let mut plans = Vec::new();
    for strategy in &options.strategies {
        for queues in topics.values() {
            plans.push(Plan::new(&**strategy, queues.clone(), &options.members, &options.newcomer)?);
        }
    }
    Ok(plans)
}

fn describe(plan: &Plan) -> String {
    let mut text = plan.title() + "\n";
    let ids = plan.members.iter().chain(plan.changes.iter().map(|change| &change.id));
    let width = ids.map(|id| id.chars().count()).max().unwrap_or_default();
    let as_grid = plan.queues.len() <= WIDEST_GRID;
    if as_grid {
        let all: Vec<usize> = (0..plan.queues.len()).collect();
        let _ = writeln!(text, "  columns: {}", ranges(plan, &all));
    }
    for id in &plan.members {
        let share = plan.share(id);
        let cells = if as_grid { grid(plan, &share) } else { ranges(plan, &share) };
        let _ = writeln!(text, "  {id:width$}  {:>4}  {cells}", share.len());
    }
    let nobody = plan.now.iter().filter(|owner| owner.is_none()).count();
    if nobody > 0 {
        let _ = writeln!(text, "  read by nobody: {nobody} queues");
    }
    for Change { id, joins, moved, own, .. } in &plan.changes {
        let (doing, whose) = if *joins { ("joins: ", "to it") } else { ("leaves:", "its own") };
        let all = plan.queues.len();
        let _ = writeln!(text, "  {id:width$}  {doing} {moved:>4} of {all} queues move, {own} of them {whose}");
    }
    let leaves: Vec<&Change> = plan.changes.iter().filter(|change| !change.joins).collect();
    if leaves.len() > 1 {
        let mean = |count: fn(&Change) -> usize| {
            leaves.iter().map(|change| count(change) as f64).sum::<f64>() / leaves.len() as f64
        };
        let (moved, own) = (mean(|change| change.moved), mean(|change| change.own));
        let _ = writeln!(text, "  when one leaves, {moved:.1} queues move on average, {own:.1} of them its own");
    }
    text
}

/// A column for each queue, brokers apart.
fn grid(plan: &Plan, share: &[usize]) -> String {
    let mut cells = String::new();
    for (index, queue) in plan.queues.iter().enumerate() {
        if index > 0 && plan.queues[index - 1].broker_name() != queue.broker_name() {
            cells.push(' ');
        }
        cells.push(if share.binary_search(&index).is_ok() { '#' } else { '.' });
    }
    cells
}

/// The queues at these indexes, by broker and number: `broker-a 0-3 7, broker-b 1`.
fn ranges(plan: &Plan, share: &[usize]) -> String {
    let queues: Vec<&MessageQueue> = share.iter().map(|index| &plan.queues[*index]).collect();
    let follows = |last: &&MessageQueue, next: &&MessageQueue| {
        last.broker_name() == next.broker_name() && last.queue_id() + 1 == next.queue_id()
    };
    let mut text = String::new();
    let mut broker = None;
    for run in queues.chunk_by(follows) {
        let (first, last) = (run[0], run[run.len() - 1]);
        if broker != Some(first.broker_name()) {
            text.push_str(if broker.is_some() { ", " } else { "" });
            text.push_str(first.broker_name());
            broker = Some(first.broker_name());
        }
        let _ = match run.len() {
            1 => write!(text, " {}", first.queue_id()),
            _ => write!(text, " {}-{}", first.queue_id(), last.queue_id()),
        };
    }
    text
}
