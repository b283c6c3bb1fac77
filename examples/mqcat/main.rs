//! A command line tool for Apache RocketMQ: consume, produce, and try out how queues would be shared.
//!
//! ```text
//! cargo run --example mqcat -- produce --namesrv 127.0.0.1:9876 --topic orders --count 10 --tags new
//! cargo run --example mqcat -- consume --namesrv 127.0.0.1:9876 --topic orders --group billing --from first
//! cargo run --example mqcat -- assign --queues 8 --members 3 --strategy all
//! ```
//!
//! Standard output carries data only; everything else goes to standard error. `--help` of each subcommand explains it.

mod assign;
mod assign_options;
mod assign_plan;
mod assign_svg;
#[path = "../common/mod.rs"]
mod common;
mod consume;
mod consume_options;
mod events;
mod failure;
mod members;
mod moment;
mod options;
mod output;
mod printer;
mod produce;
mod produce_options;
mod strategy;

use failure::Failure;
use lexopt::prelude::*;
use std::process::ExitCode;

const HELP: &str = "\
mqcat: a command line tool for Apache RocketMQ

Usage: mqcat consume|produce|assign|members [OPTIONS]

  consume   join a consumer group and print each message
  produce   send messages
  assign    show how a group's members would share queues, without a cluster
  members   let consumers of one process join and leave as standard input says, for tests

`mqcat SUBCOMMAND --help` explains the options. Standard output carries data only, everything else goes to standard
error; the environment variable RUST_LOG sets the log level (default: warn). SIGINT and SIGTERM stop in an orderly
way, a second signal stops at once.
Exit code: 0 after an orderly stop, 1 after an error, 2 when the command line is wrong.
";

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let mut parser = lexopt::Parser::from_env();
    let mut name = "mqcat".to_owned();
    match run(&mut parser, &mut name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{name}: {failure}");
            failure.exit_code()
        }
    }
}

fn run(parser: &mut lexopt::Parser, name: &mut String) -> Result<(), Failure> {
    let subcommand = match parser.next()? {
        Some(Long("help") | Short('h')) => {
            print!("{HELP}");
            return Ok(());
        }
        Some(Value(value)) => value.to_string_lossy().into_owned(),
        Some(other) => return Err(other.unexpected().into()),
        None => return Err(Failure::Usage("name a subcommand: consume, produce, assign or members".into())),
    };
    match subcommand.as_str() {
        "consume" | "produce" | "assign" | "members" => *name = format!("mqcat {subcommand}"),
        other => {
            return Err(Failure::Usage(format!(
                "unknown subcommand {other:?}: use consume, produce, assign or members"
            )));
        }
    }
    match subcommand.as_str() {
        "consume" => consume::run(parser),
        "produce" => produce::run(parser),
        "members" => members::run(parser),
        _ => assign::run(parser),
    }
}
