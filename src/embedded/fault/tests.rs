use super::*;
use crate::time::Clock;

fn table(seed: u64) -> Arc<FaultTable> {
    Arc::new(FaultTable::new(Clock::manual(), seed))
}

fn request(code: RequestCode) -> RemotingCommand {
    RemotingCommand::request_without_header(code)
}

fn place(name: &str) -> Place {
    Place::Broker(name.into())
}

#[test]
fn a_fault_happens_where_when_and_as_often_as_it_was_told() {
    let table = table(0);
    let pull = || request(RequestCode::PULL_MESSAGE);
    let fault = table.inject(Fault::lose().on([RequestCode::PULL_MESSAGE]).on_broker("a").skip(1).times(2));
    let happens = |place: &Place, request: RemotingCommand| table.decide(place, &request).is_some();
    assert!(!happens(&place("b"), pull()) && !happens(&Place::NameServer, pull()));
    assert!(!happens(&place("a"), request(RequestCode::HEART_BEAT)));
    let outcomes: Vec<bool> = (0..5).map(|_| happens(&place("a"), pull())).collect();
    assert_eq!(outcomes, [false, true, true, false, false]);
    assert_eq!(fault.hits(), 2);
    fault.remove();

    let fault = table.inject(Fault::close().when(|request| request.ext_fields.get("topic") == Some("T")));
    let mut about_topic = pull();
    assert!(!happens(&place("a"), pull()));
    about_topic.ext_fields.put("topic", "T");
    assert!(happens(&Place::NameServer, about_topic));
    table.clear();
    assert_eq!(fault.hits(), 1);
}

#[test]
fn the_first_fault_that_happens_counts() {
    let table = table(0);
    let first = table.inject(Fault::lose().times(1));
    let second = table.inject(Fault::close());
    let kinds: Vec<_> = (0..2).filter_map(|_| table.decide(&place("a"), &request(RequestCode::PULL_MESSAGE))).collect();
    assert_eq!(kinds, [Kind::Lose, Kind::Close]);
    assert_eq!((first.hits(), second.hits()), (1, 1));
}

#[test]
fn chance_follows_the_seed() {
    let outcomes = |seed| -> Vec<bool> {
        let table = table(seed);
        let _fault = table.inject(Fault::lose().chance(0.25));
        (0..1000).map(|_| table.decide(&place("a"), &request(RequestCode::PULL_MESSAGE)).is_some()).collect()
    };
    assert_eq!(outcomes(7), outcomes(7));
    assert_ne!(outcomes(7), outcomes(8));
    let share = outcomes(7).iter().filter(|happened| **happened).count();
    assert!((200..300).contains(&share), "{share}");
    let table = table(1);
    let _never = table.inject(Fault::lose().chance(0.0));
    assert!((0..100).all(|_| table.decide(&place("a"), &request(RequestCode::PULL_MESSAGE)).is_none()));
}
