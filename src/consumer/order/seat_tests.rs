use super::*;

const TIMES: LockTimes = LockTimes { interval: Duration::from_secs(20), validity: Duration::from_secs(30) };

fn seat() -> (Seat, Instant) {
    let now = Instant::now();
    let seat = Seat::new(Some(TIMES), now);
    seat.claim(1, now);
    (seat, now)
}

fn held() -> (Seat, Instant) {
    let (seat, now) = seat();
    let asked = seat.ask(1, now).unwrap();
    assert_eq!(seat.answer(asked, LockAnswer::Granted, now, now), LockNews::Granted);
    (seat, now)
}

fn lock(seat: &Seat, now: Instant) -> QueueLock {
    seat.view(now).unwrap().lock
}

fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn a_grant_is_valid_for_a_while_from_the_question_on_and_renewed_before() {
    let (seat, start) = seat();
    assert!(!seat.is_valid(start));
    let asked = seat.ask(1, start).unwrap();
    assert_eq!(seat.ask(1, start), Err(None), "a question is on its way");
    assert_eq!(seat.answer(asked, LockAnswer::Granted, start, start + secs(5)), LockNews::Granted);
    assert!(seat.is_valid(start + secs(29)) && !seat.is_valid(start + secs(31)));
    assert_eq!(lock(&seat, start + secs(31)), QueueLock::Lapsed);
    assert_eq!(seat.ask(1, start + secs(10)), Err(Some(start + secs(20))));
    let asked = seat.ask(1, start + secs(20)).unwrap();
    assert_eq!(seat.answer(asked, LockAnswer::Granted, start + secs(20), start + secs(20)), LockNews::Granted);
    assert!(seat.is_valid(start + secs(49)));
}

#[test]
fn a_refusal_is_followed_by_pauses_that_grow() {
    let (seat, mut now) = seat();
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let asked = seat.ask(1, now).unwrap();
        assert_eq!(seat.answer(asked, LockAnswer::Refused, now, now), LockNews::Refused);
        let Err(Some(next)) = seat.ask(1, now) else { panic!("no pause") };
        pauses.push((next - now).as_millis());
        now = next;
    }
    assert_eq!(pauses, [200, 400, 800, 1600, 3200, 5000, 5000]);
    assert_eq!(lock(&seat, now), QueueLock::Free);
}

#[test]
fn a_lock_that_another_member_got_ends_the_ownership() {
    let (seat, start) = held();
    let now = start + secs(20);
    let asked = seat.ask(1, now).unwrap();
    assert_eq!(seat.answer(asked, LockAnswer::Refused, now, now), LockNews::Lost);
    assert!(!seat.is_valid(now));
}

#[test]
fn silence_of_the_broker_blocks_and_one_that_nobody_can_have_used_changes_nothing() {
    let (seat, start) = held();
    let mut now = start + secs(20);
    while now < start + secs(40) {
        match seat.ask(1, now) {
            Ok(asked) => assert_eq!(seat.answer(asked, LockAnswer::Failed, now, now), LockNews::Nothing),
            Err(next) => now = next.unwrap(),
        }
    }
    assert!(!seat.is_valid(now));
    let asked = loop {
        match seat.ask(1, now) {
            Ok(asked) => break asked,
            Err(next) => now = next.unwrap(),
        }
    };
    assert_eq!(seat.answer(asked, LockAnswer::Granted, now, now), LockNews::Granted);
    assert!(seat.is_valid(now));
}

#[test]
fn a_grant_after_a_silence_longer_than_brokers_keep_locks_ends_the_ownership() {
    let (seat, start) = held();
    let now = start + secs(59);
    let asked = seat.ask(1, now).unwrap();
    assert_eq!(seat.answer(asked, LockAnswer::Granted, now, now), LockNews::Lost);
    assert!(seat.is_valid(now), "the lock is there, for the next ownership");
    seat.pass_on(2);
    assert!(matches!(seat.ask(2, now), Err(Some(_))) && seat.ask(1, now) == Err(None));
}

#[test]
fn a_lock_is_given_back_once_and_only_when_nobody_has_the_seat() {
    let (seat, now) = held();
    assert_eq!(seat.give_back(), GiveBack::Nothing, "it has an owner");
    seat.release(1);
    assert_eq!(seat.give_back(), GiveBack::Now);
    assert!(!seat.is_valid(now));
    assert_eq!(seat.give_back(), GiveBack::Nothing);
    assert_eq!(lock(&seat, now), QueueLock::GivingBack);
    seat.given_back(now);
    assert_eq!(lock(&seat, now), QueueLock::Free);
}

#[test]
fn a_queue_that_comes_back_waits_until_its_lock_is_given_back() {
    let (seat, now) = held();
    seat.release(1);
    assert_eq!(seat.give_back(), GiveBack::Now);
    seat.claim(2, now);
    assert_eq!(seat.ask(2, now), Err(None), "the unlock is on its way");
    seat.given_back(now);
    assert!(seat.ask(2, now).is_ok());
}

#[test]
fn a_lock_that_is_granted_after_the_queue_was_given_up_is_given_back() {
    let (seat, now) = seat();
    let asked = seat.ask(1, now).unwrap();
    seat.release(1);
    assert_eq!(seat.give_back(), GiveBack::Nothing, "an unlock could be done before the lock");
    assert_eq!(lock(&seat, now), QueueLock::Leaving);
    assert_eq!(seat.answer(asked, LockAnswer::Granted, now, now), LockNews::GiveBack);
    seat.given_back(now);
    assert_eq!(lock(&seat, now), QueueLock::Free);
}

#[test]
fn an_answer_for_a_former_ownership_grants_nothing_to_the_next() {
    let (seat, now) = seat();
    let asked = seat.ask(1, now).unwrap();
    seat.release(1);
    seat.claim(2, now);
    assert_eq!(seat.answer(asked, LockAnswer::Granted, now, now), LockNews::Nothing);
    assert!(!seat.is_valid(now));
    let asked = seat.ask(2, now).unwrap();
    assert_eq!(seat.answer(asked, LockAnswer::Granted, now, now), LockNews::Granted);
}

#[test]
fn a_lock_is_not_given_back_under_a_running_listener() {
    let (seat, now) = held();
    assert!(seat.enter(1, || unreachable!()));
    seat.release(1);
    assert_eq!(seat.give_back(), GiveBack::WhenLeft);
    assert_eq!(seat.view(now).unwrap().put_off, 1);
    assert!(seat.leave().gives_back);
    assert_eq!(lock(&seat, now), QueueLock::GivingBack);
}

#[test]
fn a_listener_that_ends_late_does_not_free_what_the_next_ownership_has() {
    let (seat, now) = held();
    assert!(seat.enter(1, || unreachable!()));
    seat.release(1);
    assert_eq!(seat.give_back(), GiveBack::WhenLeft);
    seat.claim(2, now);
    let asked = seat.ask(2, now).unwrap();
    assert_eq!(seat.answer(asked, LockAnswer::Granted, now, now), LockNews::Granted);
    assert!(!seat.leave().gives_back);
    assert_eq!(lock(&seat, now), QueueLock::Held);
}

#[test]
fn the_next_ownership_waits_for_listeners_of_the_former_one() {
    let (seat, _) = held();
    let woken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    assert!(seat.enter(1, || unreachable!()));
    assert!(seat.enter(1, || unreachable!()), "more workers of the same ownership, for other keys");
    seat.pass_on(2);
    let sign = woken.clone();
    assert!(!seat.enter(2, || Box::new(move || sign.store(true, Ordering::SeqCst))));
    assert!(seat.is_taken_by_another(2));
    assert!(seat.leave().waiting.is_none());
    seat.leave().waiting.expect("the last one wakes it")();
    assert!(woken.load(Ordering::SeqCst));
    assert!(seat.enter(2, || unreachable!()));
}

#[test]
fn without_locks_a_queue_is_always_valid() {
    let seat = Seat::new(None, Instant::now());
    seat.claim(1, Instant::now());
    assert!(seat.is_valid(Instant::now() + secs(1_000_000)));
    assert_eq!(seat.ask(1, Instant::now()), Err(None));
    assert!(seat.view(Instant::now()).is_none());
}

#[test]
fn an_ownership_that_is_over_does_not_take_the_place_of_the_one_that_waits() {
    let (seat, _) = held();
    let (sender, woken) = std::sync::mpsc::channel();
    let wake = |epoch: u64| -> Box<dyn FnOnce() + Send> {
        let sender = sender.clone();
        Box::new(move || sender.send(epoch).unwrap())
    };
    assert!(seat.enter(1, || wake(1)));
    seat.pass_on(2);
    seat.pass_on(3);
    assert!(!seat.enter(3, || wake(3)));
    assert!(!seat.enter(2, || wake(2)), "its worker took the token before it ended, and comes late");
    seat.leave().waiting.unwrap()();
    assert_eq!(woken.try_recv(), Ok(3));
}

#[test]
fn a_grant_given_before_the_broker_was_doubted_proves_nothing() {
    let (seat, start) = held();
    let asked = seat.ask(1, start + secs(20)).unwrap();
    seat.doubt(start + secs(21));
    // The broker granted it and restarted; the answer was on its way.
    let now = start + secs(22);
    assert_eq!(seat.answer(asked, LockAnswer::Granted, start + secs(20), now), LockNews::Nothing);
    assert!(!seat.is_valid(now));
    let asked = seat.ask(1, now).unwrap();
    assert_eq!(seat.answer(asked, LockAnswer::Granted, now, now), LockNews::Granted);
    assert!(seat.is_valid(now));
}
