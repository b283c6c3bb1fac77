//! The embedded cluster as a process of its own, for trying things out from several terminals.
//!
//! ```text
//! cargo run --example embedded -- --port 9876 --topic orders:8
//! ```
//!
//! Prints the address of its name server on standard output, and runs until SIGINT, SIGTERM or the end of its standard
//! input, so that it never outlives a script that holds its input open. Its messages live in memory and end with it.

mod common;

use crossbeam::channel::{Receiver, bounded, never, select};
use lexopt::prelude::*;
use rocketmq_sync::EmbeddedCluster;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

const HELP: &str = "\
Usage: embedded [OPTIONS]

  --port N              port of the name server on the loopback address (default: 0, any free one)
  --brokers N           number of brokers (default: 1)
  --slaves N            slaves of each broker (default: 0)
  --topic NAME[:N]      a topic with N queues a broker (default: 8), repeatable; others are created when first used
  --delay-levels TEXT   delays of the levels, such as '1s 5s 10s', for retries and delayed messages
  --ignore-stdin        do not stop at the end of standard input, for a start in the background
";

struct Options {
    port: u16,
    brokers: usize,
    slaves: usize,
    topics: Vec<(String, u32)>,
    delay_levels: Option<String>,
    ignore_stdin: bool,
}

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let options = match parse() {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("embedded: {error}");
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("embedded: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Result<Option<Options>, lexopt::Error> {
    let mut options =
        Options { port: 0, brokers: 1, slaves: 0, topics: Vec::new(), delay_levels: None, ignore_stdin: false };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("help") | Short('h') => return Ok(None),
            Long("port") => options.port = parser.value()?.parse()?,
            Long("brokers") => options.brokers = parser.value()?.parse()?,
            Long("slaves") => options.slaves = parser.value()?.parse()?,
            Long("topic") => options.topics.push(topic(parser.value()?.string()?)?),
            Long("delay-levels") => options.delay_levels = Some(parser.value()?.string()?),
            Long("ignore-stdin") => options.ignore_stdin = true,
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}

fn topic(value: String) -> Result<(String, u32), lexopt::Error> {
    match value.split_once(':') {
        None => Ok((value, 8)),
        Some((name, queues)) => match queues.parse() {
            Ok(queues) => Ok((name.to_owned(), queues)),
            Err(error) => Err(format!("--topic {value}: {error}").into()),
        },
    }
}

fn run(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let signals = common::stop_signals()?;
    let mut builder =
        EmbeddedCluster::builder().name_server_port(options.port).brokers(options.brokers).slaves(options.slaves);
    for (name, queues) in &options.topics {
        builder = builder.topic(name, *queues);
    }
    if let Some(levels) = &options.delay_levels {
        builder = builder.delay_levels(levels);
    }
    let cluster = builder.start()?;
    println!("{}", cluster.name_servers());
    io::stdout().flush()?;

    let input_ended = if options.ignore_stdin { never() } else { end_of_input()? };
    select! {
        recv(signals) -> _ => {}
        recv(input_ended) -> _ => {}
    }
    cluster.stop();
    Ok(())
}

/// A channel that closes when standard input does.
fn end_of_input() -> io::Result<Receiver<()>> {
    let (open, ended) = bounded(0);
    thread::Builder::new().name("stdin".into()).spawn(move || {
        // What comes is of no interest, and a read that fails is an end too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(open);
    })?;
    Ok(ended)
}
