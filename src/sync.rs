//! Locks without poison, with ranks that debug builds check.
//!
//! A thread may take a lock only while every lock it holds has a lower rank; taking them the other way round panics in
//! debug builds, so that a deadlock shows in the first test that walks the path and not in the field. The ranks and
//! what each lock protects stand in `DESIGN.md`. A panic while a lock is held leaves the data as it is: the owners of
//! shared state here change it in steps that each leave it whole.

use std::sync as std_sync;
use std::time::Duration;

/// Order in which locks may be taken, outer to inner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rank {
    /// A consumer's rounds; held while one runs, so that rounds of a consumer never overlap.
    Round = 5,
    /// A consumer's storing of offsets; held while answers are waited for, so that updates cannot overtake each other.
    Storing = 8,
    /// Tables of clients and instances.
    Registry = 10,
    /// Route and broker tables.
    Route = 20,
    /// The queues that a consumer holds.
    HeldQueues = 30,
    /// The local lock of one message queue.
    QueueGate = 40,
    /// The consume gate of one process queue.
    ConsumeGate = 50,
    /// Contents of one process queue.
    ProcessQueue = 60,
    /// Offset table.
    Offsets = 70,
    /// State of the embedded broker.
    Embedded = 80,
    /// Statistics and other small leaves.
    Leaf = 90,
    /// Thread hand-over: pools, timers, completions. Nothing is taken inside.
    Thread = 100,
}

#[cfg(debug_assertions)]
mod held {
    use super::Rank;
    use std::cell::RefCell;

    thread_local!(static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) });

    #[derive(Debug)]
    pub(super) struct Token(Rank);

    pub(super) fn enter(rank: Rank) -> Token {
        HELD.with_borrow_mut(|held| {
            if let Some(inner) = held.iter().max() {
                assert!(*inner < rank, "lock order: {rank:?} is taken while {inner:?} is held");
            }
            held.push(rank);
        });
        Token(rank)
    }

    impl Drop for Token {
        fn drop(&mut self) {
            // A thread that ends may have lost its list already.
            let _ = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                if let Some(at) = held.iter().rposition(|rank| *rank == self.0) {
                    held.remove(at);
                }
            });
        }
    }
}

#[cfg(not(debug_assertions))]
mod held {
    #[derive(Debug)]
    pub(super) struct Token;
    pub(super) fn enter(_: super::Rank) -> Token {
        Token
    }
}

/// A mutex with a rank.
#[derive(Debug)]
pub struct Mutex<T> {
    rank: Rank,
    inner: std_sync::Mutex<T>,
}

/// Access to what a [`Mutex`] protects.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    // Declared first so that the lock is free before the rank is given up.
    inner: std_sync::MutexGuard<'a, T>,
    token: held::Token,
}

impl<T> Mutex<T> {
    /// A mutex of the given rank.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { rank, inner: std_sync::Mutex::new(value) }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let token = held::enter(self.rank);
        let inner = self.inner.lock().unwrap_or_else(std_sync::PoisonError::into_inner);
        MutexGuard { inner, token }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(std_sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std_sync::TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { inner, token: held::enter(self.rank) })
    }
}

impl<T> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A reader-writer lock with a rank.
#[derive(Debug)]
pub struct RwLock<T> {
    rank: Rank,
    inner: std_sync::RwLock<T>,
}

/// Shared access to what a [`RwLock`] protects.
#[derive(Debug)]
pub struct ReadGuard<'a, T> {
    inner: std_sync::RwLockReadGuard<'a, T>,
    _token: held::Token,
}

/// Exclusive access to what a [`RwLock`] protects.
#[derive(Debug)]
pub struct WriteGuard<'a, T> {
    inner: std_sync::RwLockWriteGuard<'a, T>,
    _token: held::Token,
}

impl<T> RwLock<T> {
    /// A lock of the given rank.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self { rank, inner: std_sync::RwLock::new(value) }
    }

    /// Waits for shared access.
    pub fn read(&self) -> ReadGuard<'_, T> {
        let token = held::enter(self.rank);
        ReadGuard { inner: self.inner.read().unwrap_or_else(std_sync::PoisonError::into_inner), _token: token }
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> WriteGuard<'_, T> {
        let token = held::enter(self.rank);
        WriteGuard { inner: self.inner.write().unwrap_or_else(std_sync::PoisonError::into_inner), _token: token }
    }
}

impl<T> std::ops::Deref for ReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> std::ops::Deref for WriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> std::ops::DerefMut for WriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar {
    inner: std_sync::Condvar,
}

impl Condvar {
    /// A condition that nobody waits for yet.
    pub const fn new() -> Self {
        Self { inner: std_sync::Condvar::new() }
    }

    /// Gives the lock up and waits to be woken. May wake without cause: test the condition in a loop.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { inner, token } = guard;
        let inner = self.inner.wait(inner).unwrap_or_else(std_sync::PoisonError::into_inner);
        MutexGuard { inner, token }
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        let MutexGuard { inner, token } = guard;
        let (inner, _) = self.inner.wait_timeout(inner, timeout).unwrap_or_else(std_sync::PoisonError::into_inner);
        MutexGuard { inner, token }
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    fn refuses_locks_in_the_wrong_order() {
        let outer = Mutex::new(Rank::Registry, ());
        let inner = Mutex::new(Rank::Leaf, ());
        {
            let _outer = outer.lock();
            let _inner = inner.lock();
        }
        let wrong = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _inner = inner.lock();
            let _outer = outer.lock();
        }));
        assert!(wrong.is_err());
        let _outer = outer.lock(); // the ranks held were given back while unwinding
    }

    #[test]
    fn survives_a_panic_while_held() {
        let mutex = Mutex::new(Rank::Leaf, 1);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = mutex.lock();
            panic!("in the critical section");
        }));
        assert_eq!(*mutex.lock(), 1);
    }
}
