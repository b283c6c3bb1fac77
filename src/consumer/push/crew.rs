//! The worker threads: how many there are, and how their number changes while they work.
//!
//! Workers are numbered. One whose number is not below the number wanted leaves when it next looks: between two calls of
//! the listener or while it waits for work, never inside a call. What is left of its batch goes to another.

use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Mutex, Rank};
use crate::thread::JoinGuard;
use crate::time::Deadline;
use crossbeam::channel::{Receiver, Sender, bounded, select};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A worker's place in a crew.
pub(super) struct Place {
    pub(super) number: usize,
    /// The worker has left for good; changed under the crew's lock only.
    has_left: AtomicBool,
    /// Wakes the worker from waiting for work, to look whether it is still wanted.
    wake: Sender<()>,
    woken: Receiver<()>,
}

impl Place {
    fn new(number: usize) -> Self {
        let (wake, woken) = bounded(1);
        Self { number, has_left: AtomicBool::new(false), wake, woken }
    }

    /// Waits for work. `None`: the worker was woken to look whether it is still wanted.
    pub(super) fn next<W>(&self, work: &Receiver<W>) -> Option<W> {
        // Waiting for two channels costs more, but only a worker without work does it.
        if let Ok(work) = work.try_recv() {
            return Some(work);
        }
        select! {
            recv(work) -> work => work.ok(),
            recv(self.woken) -> _ => None,
        }
    }
}

impl AsRef<Place> for Place {
    fn as_ref(&self) -> &Place {
        self
    }
}

/// `S` is what each worker has: its place, and what a service shows of it.
pub(super) struct Crew<S = Place> {
    wanted: AtomicUsize,
    members: Mutex<Members<S>>,
}

struct Members<S> {
    /// By number.
    list: Vec<Member<S>>,
    /// The end has begun: nobody is taken on any more.
    is_closed: bool,
}

struct Member<S> {
    seat: Arc<S>,
    thread: Arc<JoinGuard>,
}

impl<S: AsRef<Place>> Member<S> {
    fn place(&self) -> &Place {
        (*self.seat).as_ref()
    }
}

impl<S: From<Place> + AsRef<Place>> Crew<S> {
    pub(super) fn new() -> Self {
        Self {
            wanted: AtomicUsize::new(0),
            members: Mutex::new(Rank::Thread, Members { list: Vec::new(), is_closed: false }),
        }
    }

    pub(super) fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Makes it `wanted` workers. After an error some of the new ones may be missing.
    pub(super) fn resize(&self, wanted: usize, spawn: impl Fn(Arc<S>) -> Result<JoinGuard>) -> Result<()> {
        let mut members = self.members.lock();
        if members.is_closed {
            return Err(Error::new(ErrorKind::State, "the consumer stops"));
        }
        let members = &mut members.list;
        let before = self.wanted();
        for number in 0..wanted {
            if members.get(number).is_some_and(|member| !member.place().has_left.load(Ordering::Relaxed)) {
                continue;
            }
            let seat = Arc::new(S::from(Place::new(number)));
            let thread = match spawn(seat.clone()) {
                Ok(thread) => Arc::new(thread),
                Err(error) => {
                    self.wanted.store(number.max(before.min(wanted)), Ordering::Relaxed);
                    return Err(error);
                }
            };
            let member = Member { seat, thread };
            match members.get_mut(number) {
                Some(place) => *place = member,
                None => members.push(member),
            }
        }
        self.wanted.store(wanted, Ordering::Relaxed);
        for member in members.iter().skip(wanted) {
            let _ = member.place().wake.try_send(());
        }
        Ok(())
    }

    /// Whether the worker is still wanted; asked between two calls of the listener.
    pub(super) fn wants(&self, place: &Place) -> bool {
        place.number < self.wanted()
    }

    /// Whether the worker stays. If not, it must end: its place may be taken by another.
    pub(super) fn keeps(&self, place: &Place) -> bool {
        if self.wants(place) {
            return true;
        }
        // Under the lock, so that a change of the number either finds it here or knows that it has gone.
        let _members = self.members.lock();
        let stays = self.wants(place);
        place.has_left.store(!stays, Ordering::Relaxed);
        stays
    }

    pub(super) fn seats(&self) -> Vec<Arc<S>> {
        self.members.lock().list.iter().map(|member| member.seat.clone()).collect()
    }

    /// Ends all workers; `false` when one had not returned from the listener by the deadline.
    pub(super) fn join(&self, deadline: Deadline) -> bool {
        let threads: Vec<_> = {
            let mut members = self.members.lock();
            members.is_closed = true;
            self.wanted.store(0, Ordering::Relaxed);
            for member in &members.list {
                let _ = member.place().wake.try_send(());
            }
            members.list.iter().map(|member| member.thread.clone()).collect()
        };
        // Each one is waited for, also behind one that is late.
        threads.iter().filter(|thread| !thread.join(deadline)).count() == 0
    }
}
