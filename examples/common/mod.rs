//! What the long-running examples share: how they stop.

use crossbeam::channel::{Receiver, bounded};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::{io, process, thread};

/// Gives a channel that gets the number of the first SIGINT or SIGTERM. The second one ends the process at once, with the
/// exit code that shells give to a process which a signal ended.
pub fn stop_signals() -> io::Result<Receiver<i32>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let (sender, first) = bounded(1);
    thread::Builder::new().name("signals".into()).spawn(move || {
        for (turn, signal) in signals.forever().enumerate() {
            if turn > 0 || sender.send(signal).is_err() {
                process::exit(128 + signal);
            }
        }
    })?;
    Ok(first)
}
