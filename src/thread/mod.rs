//! Threads: named ones, an elastic pool, a timer, and a latch to stop by.
//!
//! Every thread of the crate starts through [`spawn_named`], so that a list of the process's threads tells what each
//! is for. User code runs inside [`contain`], so that its panics end a job and never a thread.

mod pool;
mod shutdown;
mod timer;

pub use pool::WorkerPool;
pub use shutdown::{JoinGuard, Latch};
pub use timer::Timer;

use crate::error::{Error, ErrorKind, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// Starts a thread with a name. Linux shows the first 15 bytes of it.
///
/// # Errors
/// [`ErrorKind::Io`] when the system has no more threads to give.
pub fn spawn_named(name: &str, f: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let name = name.replace('\0', "");
    Builder::new().name(name.clone()).spawn(f).map_err(|source| {
        Error::new(ErrorKind::Io, format!("cannot start the thread {name}: {source}")).with_source(source)
    })
}

/// Whether the calling thread is one of this crate's, so that user code on it must not wait for its end.
pub fn is_service_thread() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("rmq-"))
}

/// Runs `f` and turns a panic into its text.
///
/// What `f` shared with others must be whole after a panic; the locks of [`crate::sync`] have no poison.
pub fn contain<R>(f: impl FnOnce() -> R) -> std::result::Result<R, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let text = panic_text(&*payload);
        // The payload is a value of the user; dropping it may panic as well.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        text
    })
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without text".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_carries_its_name() {
        let (tx, rx) = crossbeam::channel::bounded(1);
        let thread = spawn_named("rmq-\0test", move || {
            tx.send(std::thread::current().name().map(str::to_owned)).expect("the test waits");
        });
        assert_eq!(rx.recv().expect("the thread answers").as_deref(), Some("rmq-test"));
        thread.expect("a thread").join().expect("no panic");
    }

    #[test]
    fn a_panic_becomes_its_text() {
        assert_eq!(contain(|| 1), Ok(1));
        assert_eq!(contain(|| panic!("no {}", 1)), Err::<(), _>("no 1".to_owned()));
        assert_eq!(contain(|| std::panic::panic_any(7)), Err::<(), _>("a panic without text".to_owned()));
    }
}
