//! Table sizes and counts of a client or server, to be looked at from any thread.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What the tables of a client or server hold, and what has happened so far.
///
/// The sizes are those after the reactor's last turn. Each of them goes back to a small number when nothing is under
/// way, whatever failed before.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemotingStats {
    /// Connections, open or being dialled.
    pub connections: usize,
    /// Addresses with a connection, a dial or a back-off.
    pub addresses: usize,
    /// Calls without an outcome, callbacks that have not run included.
    pub pending_calls: usize,
    /// Calls that the reactor knows.
    pub open_calls: usize,
    /// Operations that the reactor has not taken yet.
    pub queued_operations: usize,
    /// Deadlines the reactor watches.
    pub timers: usize,
    /// Requests of peers that wait for a thread.
    pub queued_requests: usize,
    /// Dials begun.
    pub dials: u64,
    /// Dials that failed.
    pub failed_dials: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Frames read.
    pub frames_in: u64,
    /// Frames queued to be written.
    pub frames_out: u64,
    /// Calls that got no answer in time.
    pub timeouts: u64,
    /// Answers that nobody waited for any more.
    pub late_answers: u64,
    /// One-way frames dropped because no connection came about, or too many waited for one.
    pub dropped_oneways: u64,
    /// How often the reactor's thread woke.
    pub turns: u64,
    /// Panics of processors, callbacks and hooks, and of the reactor itself.
    pub panics: u64,
}

macro_rules! counters {
    (sizes: $($size:ident)*; counts: $($count:ident)*) => {
        /// The live counters behind [`RemotingStats`].
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            /// Permits taken, see [`super::completion::Permit`].
            pub(crate) pending: AtomicUsize,
            $(pub(crate) $size: AtomicUsize,)*
            $(pub(crate) $count: AtomicU64,)*
        }

        impl Counters {
            pub(crate) fn snapshot(&self) -> RemotingStats {
                RemotingStats {
                    pending_calls: self.pending.load(Ordering::Relaxed),
                    $($size: self.$size.load(Ordering::Relaxed),)*
                    $($count: self.$count.load(Ordering::Relaxed),)*
                }
            }
        }
    };
}

counters! {
    sizes: connections addresses open_calls queued_operations timers queued_requests;
    counts: dials failed_dials accepted refused frames_in frames_out timeouts late_answers dropped_oneways turns panics
}

/// Adds one to a counter of events.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
