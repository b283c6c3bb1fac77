//! Members that want one queue by turns, a broker with its lock table, and a network that delays, loses and reorders, on a
//! clock of their own. Seeded; a failure names its seed.

use super::*;

const TIMES: LockTimes = LockTimes { interval: Duration::from_secs(20), validity: Duration::from_secs(30) };
const MEMBERS: usize = 4;
/// A request without an answer fails for its sender after so long.
const TIMEOUT: u64 = 3000;
const STEP: u64 = 50;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Copy)]
enum What {
    Lock { number: u64, sent: u64 },
    Unlock,
}

enum Event {
    /// A request is at the broker; how its answer travels is decided with it.
    AtBroker {
        member: usize,
        what: What,
        back: Option<u64>,
    },
    Answer {
        member: usize,
        what: What,
        granted: Option<bool>,
    },
    Left(usize),
}

struct World {
    start: Instant,
    now: u64,
    dice: Dice,
    seats: Vec<Seat>,
    epochs: Vec<u64>,
    next_epoch: u64,
    inside: Vec<usize>,
    events: Vec<(u64, Event)>,
    /// Whose the lock is, and since when.
    lock: Option<(usize, u64)>,
    is_calm: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let start = Instant::now();
        Self {
            start,
            now: 0,
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            seats: (0..MEMBERS).map(|_| Seat::new(Some(TIMES), start)).collect(),
            epochs: vec![0; MEMBERS],
            next_epoch: 1,
            inside: vec![0; MEMBERS],
            events: Vec::new(),
            lock: None,
            is_calm: false,
        }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    fn instant(&self) -> Instant {
        self.at(self.now)
    }

    fn send(&mut self, member: usize, what: What) {
        let lost = if self.is_calm { 0 } else { 15 };
        let slow = if self.is_calm { 20 } else { 2500 };
        let there = self.now + self.dice.below(slow);
        let back = (!self.dice.chance(lost)).then(|| self.dice.below(slow));
        if self.dice.chance(lost) {
            self.events.push((self.now + TIMEOUT, Event::Answer { member, what, granted: None }));
        } else {
            // Lost on the way back, the broker has done it all the same.
            self.events.push((there, Event::AtBroker { member, what, back }));
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::AtBroker { member, what, back } => {
                let is_live = self.lock.filter(|(_, since)| self.now - since <= 60_000);
                let granted = match what {
                    What::Lock { .. } => {
                        let is_free = is_live.is_none_or(|(owner, _)| owner == member);
                        if is_free {
                            self.lock = Some((member, self.now));
                        }
                        is_free
                    }
                    What::Unlock => {
                        self.lock = self.lock.filter(|(owner, _)| *owner != member);
                        true
                    }
                };
                let event = match back {
                    Some(back) => (self.now + back, Event::Answer { member, what, granted: Some(granted) }),
                    None => (self.now + TIMEOUT, Event::Answer { member, what, granted: None }),
                };
                self.events.push(event);
            }
            Event::Answer { member, what: What::Unlock, .. } => self.seats[member].given_back(self.instant()),
            Event::Answer { member, what: What::Lock { number, sent }, granted } => {
                let answer = match granted {
                    Some(true) => LockAnswer::Granted,
                    Some(false) => LockAnswer::Refused,
                    None => LockAnswer::Failed,
                };
                match self.seats[member].answer(number, answer, self.at(sent), self.instant()) {
                    LockNews::GiveBack => self.send(member, What::Unlock),
                    LockNews::Lost => {
                        self.epochs[member] = self.next_epoch;
                        self.seats[member].pass_on(self.next_epoch);
                        self.next_epoch += 1;
                    }
                    LockNews::Granted | LockNews::Refused | LockNews::Nothing => {}
                }
            }
            Event::Left(member) => {
                self.inside[member] -= 1;
                let left = self.seats[member].leave();
                if left.gives_back {
                    self.send(member, What::Unlock);
                }
                drop(left.waiting);
            }
        }
    }

    fn want(&mut self, member: usize) {
        self.epochs[member] = self.next_epoch;
        self.seats[member].claim(self.next_epoch, self.instant());
        self.next_epoch += 1;
    }

    fn give_up(&mut self, member: usize) {
        self.seats[member].release(self.epochs[member]);
        self.epochs[member] = 0;
        if self.seats[member].give_back() == GiveBack::Now {
            self.send(member, What::Unlock);
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        while let Some(at) = self.events.iter().position(|(due, _)| *due <= self.now) {
            let (_, event) = self.events.swap_remove(at);
            self.handle(event);
        }
        for member in 0..MEMBERS {
            if self.epochs[member] == 0 {
                if !self.is_calm && self.dice.chance(1) {
                    self.want(member);
                }
                continue;
            }
            if !self.is_calm && self.dice.below(400) == 0 {
                self.give_up(member);
                continue;
            }
            if let Ok(number) = self.seats[member].ask(self.epochs[member], self.instant()) {
                self.send(member, What::Lock { number, sent: self.now });
            }
            let may = self.seats[member].is_valid(self.instant());
            if may && self.dice.chance(20) && self.seats[member].enter(self.epochs[member], || Box::new(|| ())) {
                self.inside[member] += 1;
                let work = self.dice.below(3000);
                self.events.push((self.now + work, Event::Left(member)));
            }
        }
    }

    fn valid(&self) -> Vec<usize> {
        (0..MEMBERS).filter(|member| self.seats[*member].is_valid(self.instant())).collect()
    }
}

#[test]
fn never_may_two_members_hand_out_and_in_the_end_the_one_that_wants_the_queue_does() {
    let mut had = 0;
    for seed in 1..=100 {
        let mut world = World::new(seed);
        for _ in 0..8000 {
            world.step();
            let valid = world.valid();
            assert!(valid.len() <= 1, "seed {seed}, {} ms: members {valid:?} may hand out", world.now);
            had += valid.len();
            // Listeners end within 3 s, locks outlast them by 30: nobody is inside while another may hand out.
            if let [owner] = valid[..] {
                let others = (0..MEMBERS).filter(|member| *member != owner && world.inside[*member] > 0);
                assert_eq!(others.count(), 0, "seed {seed}, {} ms: a listener of another runs", world.now);
            }
        }
        world.is_calm = true;
        for member in 0..MEMBERS {
            if world.epochs[member] != 0 {
                world.give_up(member);
            }
        }
        world.want(0);
        let begun = world.now;
        while world.valid() != [0] {
            world.step();
            assert!(world.now < begun + 70_000, "seed {seed}: nobody has the queue");
        }
    }
    assert!(had > 100 * 2000, "the queue was hardly ever held: {had}");
}
