use super::*;
use crate::consumer::order::run::Verdict;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
struct Note {
    offset: i64,
    key: Option<&'static str>,
    tries: i32,
}

impl Item for Note {
    fn offset(&self) -> i64 {
        self.offset
    }
    fn key(&self) -> Option<&str> {
        self.key
    }
    fn tries(&self) -> i32 {
        self.tries
    }
    fn set_tries(&mut self, tries: i32) {
        self.tries = tries;
    }
}

fn note(offset: i64, key: Option<&'static str>) -> Note {
    Note { offset, key, tries: 0 }
}

fn notes(range: std::ops::Range<i64>) -> Vec<Note> {
    range.map(|offset| note(offset, None)).collect()
}

fn offsets(notes: &[Note]) -> Vec<i64> {
    notes.iter().map(|note| note.offset).collect()
}

#[test]
fn one_worker_at_a_time_is_in_a_queue() {
    let mut lanes = Lanes::new(false);
    lanes.put(notes(0..3));
    assert!(lanes.offer());
    assert!(!lanes.offer(), "the token is on its way");
    lanes.accept();
    let (key, mut run) = lanes.take().unwrap();
    lanes.put(notes(3..5));
    assert!(!lanes.offer() && lanes.take().is_none(), "a worker is inside");
    assert_eq!(offsets(run.next(2)), [0, 1]);
    assert_eq!(offsets(run.answer(2, Verdict::Commit)), [0, 1]);
    assert_eq!(lanes.put_back(&key, run, RunEnd::More), None);
    assert!(lanes.offer());
    let (key, mut run) = lanes.take().unwrap();
    assert_eq!(offsets(run.next(9)), [2, 3, 4]);
    run.answer(3, Verdict::Commit);
    lanes.put_back(&key, run, RunEnd::More);
    lanes.accept();
    assert!(!lanes.offer(), "nothing is left");
}

#[test]
fn a_suspended_lane_comes_again_where_it_was_and_only_by_its_own_timer() {
    let mut lanes = Lanes::new(false);
    let until = Instant::now() + Duration::from_secs(1);
    lanes.put(notes(0..3));
    let (key, mut run) = lanes.take().unwrap();
    run.answer(1, Verdict::Commit);
    assert_eq!(run.answer(1, Verdict::Suspend), []);
    run.count_tries(1);
    let first = lanes.put_back(&key, run, RunEnd::Suspended(until)).unwrap();
    lanes.put(notes(3..4));
    assert!(lanes.take().is_none());
    assert_eq!(lanes.suspended(), Some((1, until)));
    assert!(!lanes.is_ready_below(9), "a drain does not wait for it");
    lanes.wake(&key, first + 1);
    assert!(lanes.take().is_none(), "another suspension's timer");
    lanes.wake(&key, first);
    assert!(lanes.is_ready_below(9));
    let (key, run) = lanes.take().unwrap();
    assert_eq!((offsets(run.next(9)), run.next(9)[0].tries), (vec![1, 2, 3], 1));
    let second = lanes.put_back(&key, run, RunEnd::Suspended(until)).unwrap();
    assert_ne!(first, second);
}

#[test]
fn a_rollback_brings_back_all_since_the_last_commit() {
    let mut lanes = Lanes::new(false);
    lanes.put(notes(0..5));
    let (key, mut run) = lanes.take().unwrap();
    assert_eq!(run.answer(1, Verdict::Keep), []);
    assert_eq!(offsets(run.answer(1, Verdict::Commit)), [0, 1]);
    run.answer(1, Verdict::Keep);
    lanes.put_back(&key, run, RunEnd::More);
    let (key, mut run) = lanes.take().unwrap();
    assert_eq!(offsets(run.next(1)), [3], "what waits for a commit is not handed out again");
    run.answer(1, Verdict::RollBack);
    let number = lanes.put_back(&key, run, RunEnd::Suspended(Instant::now())).unwrap();
    lanes.wake(&key, number);
    let (_, mut run) = lanes.take().unwrap();
    assert_eq!(offsets(run.next(9)), [2, 3, 4]);
    assert_eq!(offsets(run.answer(3, Verdict::Commit)), [2, 3, 4]);
}

#[test]
fn uncommitted_messages_alone_are_no_work_and_are_kept() {
    let mut lanes = Lanes::new(false);
    lanes.put(notes(0..2));
    let (key, mut run) = lanes.take().unwrap();
    run.answer(2, Verdict::Keep);
    lanes.put_back(&key, run, RunEnd::More);
    assert!(lanes.take().is_none());
    lanes.put(notes(2..3));
    let (_, mut run) = lanes.take().unwrap();
    assert_eq!(offsets(run.next(9)), [2]);
    assert_eq!(offsets(run.answer(1, Verdict::Commit)), [0, 1, 2]);
}

#[test]
fn keys_run_at_once_and_each_by_itself() {
    let mut lanes = Lanes::new(true);
    let keys = [Some("a"), Some("b"), None, Some("a"), None];
    lanes.put((0..).zip(keys).map(|(offset, key)| note(offset, key)).collect());
    let (a, run_a) = lanes.take().unwrap();
    let (b, run_b) = lanes.take().unwrap();
    let (none, run_none) = lanes.take().unwrap();
    assert!(lanes.take().is_none());
    assert_eq!(offsets(run_a.next(9)), [0, 3]);
    assert_eq!(offsets(run_b.next(9)), [1]);
    assert_eq!(offsets(run_none.next(9)), [2, 4]);
    assert_eq!((a.as_deref(), b.as_deref(), none), (Some("a"), Some("b"), None));
    // Key "a" is suspended; the others go on.
    lanes.put_back(&a, run_a, RunEnd::Suspended(Instant::now()));
    lanes.put_back(&b, run_b, RunEnd::More);
    assert_eq!(lanes.take().unwrap().0, b);
}

#[test]
fn lanes_without_messages_are_dropped() {
    let mut lanes = Lanes::new(true);
    for offset in 0..1000 {
        let key: &'static str = Box::leak(offset.to_string().into_boxed_str());
        lanes.put(vec![note(offset, Some(key))]);
        let (key, mut run) = lanes.take().unwrap();
        run.answer(1, Verdict::Commit);
        lanes.put_back(&key, run, RunEnd::More);
    }
    assert!(lanes.keyed.is_empty());
}

#[test]
fn a_blocked_lane_goes_first_when_it_may_go_on() {
    let mut lanes = Lanes::new(true);
    lanes.put(vec![note(0, Some("a")), note(1, Some("b"))]);
    let (a, run) = lanes.take().unwrap();
    lanes.put_back(&a, run, RunEnd::Blocked);
    assert!(lanes.is_ready_below(1) && !lanes.is_ready_below(0));
    assert_eq!(lanes.take().unwrap().0, a);
}

#[test]
fn an_ownership_that_is_over_takes_and_gives_nothing() {
    let mut lanes = Lanes::new(true);
    lanes.put(vec![note(0, Some("a")), note(1, Some("b"))]);
    let (a, run) = lanes.take().unwrap();
    lanes.close();
    assert_eq!(lanes.put_back(&a, run, RunEnd::Suspended(Instant::now())), None);
    lanes.put(notes(2..4));
    lanes.wake(&a, 0);
    assert!(!lanes.offer() && lanes.take().is_none() && lanes.suspended().is_none());
}

#[test]
fn exhausted_messages_leave_from_the_middle_and_the_rest_keeps_its_order() {
    let mut lanes = Lanes::new(false);
    let mut batch = notes(0..4);
    batch[1].tries = 3;
    lanes.put(batch);
    let (key, mut run) = lanes.take().unwrap();
    assert_eq!(run.exhausted(3, 3), [1]);
    assert_eq!(run.take_out(1).offset, 1);
    run.count_tries(2);
    let number = lanes.put_back(&key, run, RunEnd::Suspended(Instant::now())).unwrap();
    lanes.wake(&key, number);
    let (_, run) = lanes.take().unwrap();
    let left: Vec<_> = run.next(9).iter().map(|note| (note.offset, note.tries)).collect();
    assert_eq!(left, [(0, 1), (2, 1), (3, 0)]);
}
