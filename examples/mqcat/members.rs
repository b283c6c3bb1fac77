//! `mqcat members`: several consumers in one process, which join and leave as standard input says.

use crate::common::stop_signals;
use crate::consume::{Reason, Running};
use crate::consume_options;
use crate::failure::Failure;
use crate::output::Output;
use crate::printer::Wish;
use crossbeam::channel::{Receiver, Sender, bounded, select, unbounded};
use lexopt::prelude::*;
use std::collections::BTreeMap;
use std::{io, thread};

const HELP: &str = "\
Usage: mqcat members

Reads commands from standard input, a line each:

  join NAME OPTIONS           a consumer joins a group, with the options of `mqcat consume` parted by spaces; --count and
                              --duration have no effect
  leave NAME                  it leaves in an orderly way

Prints the events of `mqcat consume --json`, each with the member's NAME as \"member\". At the end of its input all
members leave.
";

pub fn run(parser: &mut lexopt::Parser) -> Result<(), Failure> {
    match parser.next()? {
        None => {}
        Some(Long("help") | Short('h')) => {
            print!("{HELP}");
            return Ok(());
        }
        Some(other) => return Err(other.unexpected().into()),
    }
    let signals = stop_signals().map_err(|error| Failure::Failed(format!("signals: {error}")))?;
    let commands = lines()?;
    let (wish, wishes) = bounded(1);
    let mut members = BTreeMap::new();
    let reason = loop {
        select! {
            recv(commands) -> line => match line {
                Ok(line) => obey(&line, &mut members, &wish)?,
                Err(_) => break Reason::Command,
            },
            recv(signals) -> _ => break Reason::Signal,
            recv(wishes) -> wish => match wish {
                Ok(Wish::OutputFailed(error)) => return Err(Failure::Failed(format!("standard output: {error}"))),
                Ok(Wish::CountReached) | Err(_) => {}
            },
        }
    };
    for member in members.values() {
        member.stop(&reason);
    }
    Ok(())
}

fn obey(line: &str, members: &mut BTreeMap<String, Running>, wish: &Sender<Wish>) -> Result<(), Failure> {
    let wrong = |why: &str| Failure::Failed(format!("command {line:?}: {why}"));
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("join"), Some(name)) if !members.contains_key(name) => {
            let options = consume_options::parse(&mut lexopt::Parser::from_args(words))?;
            let mut options = options.ok_or_else(|| wrong("--help is no option of a member"))?;
            (options.output, options.count) = (Output::Json, None);
            members.insert(name.to_owned(), Running::start(&options, Some(name), wish.clone())?);
        }
        (Some("join"), Some(_)) => return Err(wrong("there is a member of this name")),
        (Some("leave"), Some(name)) => {
            let member = members.remove(name).ok_or_else(|| wrong("there is no member of this name"))?;
            member.stop(&Reason::Command);
        }
        _ => return Err(wrong("join NAME OPTIONS or leave NAME expected")),
    }
    Ok(())
}

/// The lines of standard input, as they come.
fn lines() -> Result<Receiver<String>, Failure> {
    let (sender, lines) = unbounded();
    let read = move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("commands".into()).spawn(read).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(lines)
}
