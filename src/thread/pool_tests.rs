use super::*;
use crate::thread::Latch;
use crossbeam::channel::{Receiver, unbounded};
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

const PATIENCE: Duration = Duration::from_secs(10);

fn pool(min: usize, max: usize, capacity: usize, keep_alive: Duration) -> WorkerPool {
    WorkerPool::new("test-pool", min, max, capacity, keep_alive).expect("good bounds")
}

/// Occupies one worker until the latch is set; returns when the job runs.
fn occupy(pool: &WorkerPool, until: &Latch) {
    let (tx, rx) = unbounded();
    let until = until.clone();
    pool.submit(move || {
        tx.send(()).expect("the test waits");
        until.wait_timeout(PATIENCE);
    })
    .expect("room for a job");
    rx.recv_timeout(PATIENCE).expect("the job runs");
}

#[track_caller]
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "never came true: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

#[test]
fn grows_up_to_its_maximum_and_then_queues() {
    let pool = pool(0, 2, 1, PATIENCE);
    assert_eq!(pool.threads(), 0, "nothing is started before the first job");
    let release = Latch::new();
    occupy(&pool, &release);
    occupy(&pool, &release);
    assert_eq!(pool.threads(), 2);
    let (tx, rx) = unbounded();
    pool.submit(move || tx.send(()).expect("the test waits")).expect("room for one");
    let refused = pool.submit(|| ()).expect_err("no room for two");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    release.set();
    rx.recv_timeout(PATIENCE).expect("the queued job ran");
    assert!(pool.shutdown(Deadline::after(PATIENCE)));
    assert_eq!(pool.threads(), 0);
}

#[test]
fn an_idle_worker_is_used_before_a_new_one_is_started() {
    let pool = pool(0, 8, 8, PATIENCE);
    for _ in 0..50 {
        let (tx, rx) = unbounded();
        pool.submit(move || tx.send(()).expect("the test waits")).expect("room");
        rx.recv_timeout(PATIENCE).expect("the job ran");
        wait_for("the worker is idle", || pool.shared.state.lock().idle == 1);
    }
    assert_eq!(pool.threads(), 1);
}

#[test]
fn shrinks_to_its_minimum_after_the_keep_alive() {
    let pool = pool(1, 3, 8, Duration::from_millis(10));
    let release = Latch::new();
    (0..3).for_each(|_| occupy(&pool, &release));
    assert_eq!(pool.threads(), 3);
    release.set();
    wait_for("two threads left", || pool.threads() == 1);
    assert_eq!(pool.shared.state.lock().handles.len(), 1, "no handle of a thread that left is kept");
}

#[test]
fn resizing_lets_the_excess_go_and_admits_more() {
    let pool = pool(2, 2, 8, PATIENCE);
    let release = Latch::new();
    (0..2).for_each(|_| occupy(&pool, &release));
    pool.resize(1, 1);
    release.set();
    wait_for("one thread left", || pool.threads() == 1);
    pool.resize(0, 3);
    let release = Latch::new();
    (0..3).for_each(|_| occupy(&pool, &release));
    assert_eq!(pool.threads(), 3);
    release.set();
}

#[test]
fn a_panic_ends_the_job_and_not_the_worker() {
    let pool = pool(1, 1, 8, PATIENCE);
    let (tx, rx) = unbounded();
    pool.submit(|| panic!("on purpose")).expect("room");
    pool.submit(move || tx.send(std::thread::current().name().map(str::to_owned)).expect("the test waits"))
        .expect("room");
    assert_eq!(rx.recv_timeout(PATIENCE).expect("the second job ran").as_deref(), Some("test-pool-1"));
    assert_eq!(pool.panics(), 1);
}

#[test]
fn shutdown_runs_what_is_queued_and_refuses_more() {
    let pool = pool(1, 1, 100, PATIENCE);
    let release = Latch::new();
    occupy(&pool, &release);
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let ran = Arc::clone(&ran);
        pool.submit(move || {
            ran.fetch_add(1, Ordering::Relaxed);
        })
        .expect("room");
    }
    assert!(!pool.shutdown(Deadline::after(Duration::ZERO)), "a job still runs");
    assert_eq!(pool.submit(|| ()).expect_err("closed").kind(), ErrorKind::State);
    release.set();
    assert!(pool.shutdown(Deadline::after(PATIENCE)));
    assert_eq!(ran.load(Ordering::Relaxed), 100);
}

#[test]
fn shutdown_from_a_job_does_not_wait_for_itself() {
    let pool = Arc::new(pool(1, 2, 8, PATIENCE));
    let (tx, rx) = unbounded();
    let inner = Arc::clone(&pool);
    pool.submit(move || tx.send(inner.shutdown(Deadline::after(PATIENCE))).expect("the test waits")).expect("room");
    assert_eq!(rx.recv_timeout(PATIENCE), Ok(false));
    assert!(pool.shutdown(Deadline::after(PATIENCE)));
}

#[test]
fn no_job_is_lost_when_many_threads_submit() {
    let pool = Arc::new(pool(0, 4, usize::MAX, Duration::from_micros(50)));
    let (tx, rx): (_, Receiver<usize>) = unbounded();
    let submitters: Vec<_> = (0..4)
        .map(|number| {
            let (pool, tx) = (Arc::clone(&pool), tx.clone());
            std::thread::spawn(move || {
                for at in 0..2_000 {
                    let tx = tx.clone();
                    pool.submit(move || tx.send(number * 2_000 + at).expect("the test listens")).expect("room");
                }
            })
        })
        .collect();
    submitters.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let mut got: Vec<_> = (0..8_000).map(|_| rx.recv_timeout(PATIENCE).expect("every job runs")).collect();
    got.sort_unstable();
    assert!(got.iter().copied().eq(0..8_000));
    assert!(pool.shutdown(Deadline::after(PATIENCE)));
}
