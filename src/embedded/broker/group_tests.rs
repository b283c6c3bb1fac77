use super::*;

fn member(client_id: &str, now: Instant) -> Member {
    Member {
        client_id: client_id.into(),
        language: LanguageCode::JAVA,
        version: 479,
        peer: "127.0.0.1:5000".parse().unwrap(),
        last_update: now,
    }
}

fn subscription(topic: &str, expression: &str, version: i64) -> SubscriptionData {
    SubscriptionData::tag_expression(topic, expression, version).unwrap()
}

fn registration(topics: &[(&str, &str, i64)]) -> Registration {
    Registration {
        group: "G".into(),
        consume_type: ConsumeType::Passively,
        message_model: MessageModel::Clustering,
        consume_from_where: ConsumeFromWhere::LastOffset,
        subscriptions: Some(topics.iter().map(|(topic, tags, version)| subscription(topic, tags, *version)).collect()),
        notify: true,
    }
}

const NOBODY: [u64; 0] = [];

fn told(notice: Option<Notice>) -> Vec<u64> {
    notice.map(|(_, connections)| connections).unwrap_or_default()
}

#[test]
fn everybody_hears_of_a_newcomer_and_nobody_of_a_repetition() {
    let (mut groups, now) = (ConsumerGroups::default(), Instant::now());
    assert_eq!(told(groups.register(1, member("a", now), registration(&[("T", "*", 1)]))), [1]);
    assert_eq!(told(groups.register(2, member("b", now), registration(&[("T", "*", 1)]))), [1, 2]);
    assert_eq!(told(groups.register(2, member("b", now), registration(&[("T", "*", 1)]))), NOBODY);
    // Two connections of one client id are two members.
    assert_eq!(told(groups.register(3, member("b", now), registration(&[("T", "*", 1)]))), [1, 2, 3]);
}

#[test]
fn another_client_id_on_a_connection_replaces_the_member_silently() {
    let (mut groups, now) = (ConsumerGroups::default(), Instant::now());
    groups.register(1, member("a", now), registration(&[("T", "*", 1)]));
    assert_eq!(told(groups.register(1, member("z", now), registration(&[("T", "*", 1)]))), NOBODY);
    let group = groups.get("G").unwrap();
    assert!(group.connection_of("a").is_none() && group.connection_of("z").is_some());
}

#[test]
fn only_topics_that_appear_or_vanish_are_a_change() {
    let (mut groups, now) = (ConsumerGroups::default(), Instant::now());
    let mut beat = |topics: &[(&str, &str, i64)]| {
        let told = told(groups.register(1, member("a", now), registration(topics)));
        let kept = groups.get("G").unwrap().subscription("T").map(|kept| kept.sub_string.to_string());
        (told, kept)
    };
    beat(&[("T", "A", 5)]);
    assert_eq!(beat(&[("T", "B", 6)]), (vec![], Some("B".into())));
    assert_eq!(beat(&[("T", "C", 6)]), (vec![], Some("B".into())));
    assert_eq!(beat(&[("T", "C", 2), ("U", "*", 1)]), (vec![1], Some("B".into())));
    assert_eq!(beat(&[("U", "*", 1)]), (vec![1], None));
    assert_eq!(beat(&[]), (vec![1], None));
    assert_eq!(beat(&[]), (vec![], None));
}

#[test]
fn members_with_different_topics_make_every_heartbeat_a_change() {
    let (mut groups, now) = (ConsumerGroups::default(), Instant::now());
    groups.register(1, member("a", now), registration(&[("TA", "*", 1)]));
    groups.register(2, member("b", now), registration(&[("TB", "*", 1)]));
    for _ in 0..3 {
        assert_eq!(told(groups.register(1, member("a", now), registration(&[("TA", "*", 1)]))), [1, 2]);
        assert_eq!(told(groups.register(2, member("b", now), registration(&[("TB", "*", 1)]))), [1, 2]);
    }
    assert_eq!(groups.subscribers_of("TB"), ["G".into()]);
    assert!(groups.subscribers_of("TA").is_empty());
}

#[test]
fn a_heartbeat_without_subscriptions_leaves_them_alone() {
    let (mut groups, now) = (ConsumerGroups::default(), Instant::now());
    groups.register(1, member("a", now), registration(&[("T", "*", 1)]));
    let slim = || Registration { subscriptions: None, ..registration(&[]) };
    assert_eq!(told(groups.register(1, member("a", now), slim())), NOBODY);
    assert_eq!(told(groups.register(2, member("b", now), slim())), [1, 2]);
    assert!(groups.get("G").unwrap().subscription("T").is_some());
}

#[test]
fn leaving_tells_the_others_by_unregister_and_by_close() {
    let (mut groups, now) = (ConsumerGroups::default(), Instant::now());
    for connection in 1..=3 {
        groups.register(connection, member("a", now), registration(&[("T", "*", 1)]));
    }
    assert_eq!(told(groups.unregister("G", 3, true)), [1, 2]);
    // It is told again although that connection is no member any more.
    assert_eq!(told(groups.unregister("G", 3, true)), [1, 2]);
    assert_eq!(told(groups.unregister("G", 3, false)), NOBODY);
    assert_eq!(groups.close(3).len(), 0);
    let notices = groups.close(1);
    assert_eq!(notices, [("G".into(), vec![2])]);
    assert_eq!(groups.close(2), []);
    assert!(groups.get("G").is_none());
    assert!(groups.unregister("G", 2, true).is_none());
}

#[test]
fn broadcasting_groups_are_never_told() {
    let (mut groups, now) = (ConsumerGroups::default(), Instant::now());
    let broadcasting = || Registration { message_model: MessageModel::Broadcasting, ..registration(&[("T", "*", 1)]) };
    assert_eq!(told(groups.register(1, member("a", now), broadcasting())), NOBODY);
    assert_eq!(told(groups.register(2, member("b", now), broadcasting())), NOBODY);
    assert_eq!(groups.close(1), []);
}

#[test]
fn the_expiry_scan_removes_silently_and_names_the_connections() {
    let (mut groups, start) = (ConsumerGroups::default(), Instant::now());
    assert_eq!(groups.next_expiry(), None);
    groups.register(1, member("a", start), registration(&[("T", "*", 1)]));
    groups.register(2, member("b", start + Duration::from_secs(60)), registration(&[("T", "*", 1)]));
    assert!(groups.expire(start + Duration::from_secs(120)).is_empty());
    let due = groups.next_expiry().unwrap();
    assert_eq!(groups.expire(due), BTreeSet::from([1]));
    assert_eq!(groups.close(1), []);
    assert_eq!(groups.get("G").unwrap().members().len(), 1);
    assert_eq!(groups.expire(start + Duration::from_secs(600)), BTreeSet::from([2]));
    assert!(groups.get("G").is_none() && groups.by_connection.is_empty());
}

#[test]
fn producers_come_and_go_without_notices() {
    let (mut producers, now) = (ProducerGroups::default(), Instant::now());
    producers.register("P", 1, member("a", now));
    producers.register("P", 2, member("b", now));
    producers.unregister("P", 1);
    assert_eq!(producers.get("P").unwrap().len(), 1);
    producers.close(2);
    assert!(producers.get("P").is_none());
}
