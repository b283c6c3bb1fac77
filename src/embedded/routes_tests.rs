use super::*;

fn register(routes: &Routes, name: &str, cluster: &str, id: i64, topics: &[Topic]) {
    routes.register(&name.into(), &cluster.into(), id, format!("{name}:{id}").into(), topics.iter());
}

fn topic(name: &str, perm: i32) -> Topic {
    Topic::new(name, 4, perm)
}

fn header<'a>(name: &'a str, id: i64, address: &'a str) -> RegisterBrokerRequestHeader<'a> {
    RegisterBrokerRequestHeader {
        broker_name: name,
        broker_addr: address,
        cluster_name: "C",
        ha_server_addr: "ha",
        broker_id: id,
        heartbeat_timeout_millis: None,
        enable_acting_master: None,
        compressed: false,
        body_crc32: 0,
    }
}

fn body(counter: i64, topics: &[&str]) -> TopicConfigSerializeWrapper {
    let config = |name: &&str| ((*name).into(), TopicConfig { topic_name: (*name).into(), ..TopicConfig::default() });
    TopicConfigSerializeWrapper {
        data_version: DataVersion { counter, ..DataVersion::default() },
        topic_config_table: topics.iter().map(config).collect(),
    }
}

fn perm(routes: &Routes, topic: &str) -> i32 {
    routes.of_topic(topic).unwrap()[0].1.perm
}

#[test]
fn a_topic_has_a_route_while_one_of_its_brokers_is_there() {
    let routes = Routes::new();
    register(&routes, "a", "C", 0, &[topic("T", 6)]);
    register(&routes, "b", "D", 0, &[topic("T", 6), topic("U", 6)]);
    assert_eq!(routes.of_topic("T").unwrap().len(), 2);
    assert_eq!(routes.topics(None), ["T".into(), "U".into()]);
    assert_eq!(routes.topics(Some("C")), ["T".into()]);
    routes.unregister("b", 0);
    assert_eq!(&*routes.of_topic("T").unwrap()[0].0.broker_name, "a");
    assert_eq!(routes.of_topic("U"), None);
    routes.update(&"b".into(), &topic("T", 6));
    assert_eq!(routes.of_topic("T").unwrap().len(), 1);
    routes.delete_topic("T", Some("D"));
    assert!(routes.of_topic("T").is_some());
    routes.delete_topic("T", Some("C"));
    assert_eq!(routes.of_topic("T"), None);
}

#[test]
fn write_permission_is_taken_and_given_back_for_all_topics_of_a_broker() {
    let routes = Routes::new();
    register(&routes, "a", "C", 0, &[topic("T", 7), topic("U", 4)]);
    assert_eq!(routes.set_writable("a", false), 2);
    assert_eq!(perm(&routes, "T"), 5);
    assert_eq!(routes.set_writable("a", true), 2);
    assert_eq!(perm(&routes, "U"), 6);
    assert_eq!(routes.set_writable("x", true), 0);
    routes.clear();
    assert!(routes.brokers().is_empty());
}

#[test]
fn a_route_stays_while_a_slave_is_there() {
    let routes = Routes::new();
    register(&routes, "a", "C", 0, &[topic("T", 6)]);
    register(&routes, "a", "C", 1, &[]);
    routes.unregister("a", 0);
    let (broker, queues) = &routes.of_topic("T").unwrap()[0];
    assert_eq!((broker.broker_addrs.keys().collect::<Vec<_>>(), queues.perm), (vec![&1], 6));
    routes.unregister("a", 1);
    assert_eq!(routes.of_topic("T"), None);
}

#[test]
fn a_remote_broker_is_there_until_it_leaves_falls_silent_or_hangs_up() {
    let (routes, start) = (Routes::new(), Instant::now());
    let join = |address, connection| {
        routes.register_remote(&header("r", 0, address), body(1, &["T", "U"]), connection, start).unwrap()
    };
    join("r:1", 7);
    assert!(routes.of_topic("U").is_some());
    routes.unregister_remote("C", "r", "r:1");
    assert_eq!(routes.of_topic("U"), None);
    join("r:1", 7);
    routes.closed(7);
    assert_eq!(routes.of_topic("U"), None);
    join("r:1", 7);
    assert!(routes.touch_remote("C", "r:1", start + Duration::from_secs(100)).is_some());
    routes.expire(start + Duration::from_secs(220));
    assert!(routes.of_topic("U").is_some());
    routes.expire(start + Duration::from_secs(221));
    assert_eq!((routes.of_topic("U"), routes.touch_remote("C", "r:1", start)), (None, None));
}

#[test]
fn registration_follows_the_rules_of_upstream() {
    let (routes, now) = (Routes::new(), Instant::now());
    let put = |header: &RegisterBrokerRequestHeader<'_>, body| routes.register_remote(header, body, 1, now);
    assert!(put(&header("r", 0, "r:1"), body(1, &["T"])).is_err(), "one topic first");
    put(&header("r", 0, "r:1"), body(1, &[])).unwrap();
    put(&header("r", 0, "r:1"), body(2, &["T"])).unwrap();
    assert_eq!(perm(&routes, "T"), 6);
    // The same version changes nothing that is known.
    let mut changed = body(2, &["T", "U"]);
    changed.topic_config_table.get_mut("T").unwrap().perm = 4;
    put(&header("r", 0, "r:1"), changed.clone()).unwrap();
    assert_eq!((perm(&routes, "T"), perm(&routes, "U")), (6, 6));
    changed.data_version.counter = 3;
    put(&header("r", 0, "r:1"), changed).unwrap();
    assert_eq!(perm(&routes, "T"), 4);
    // A slave learns of its master, and its topics do not count.
    let slave = put(&header("r", 1, "r:2"), body(1, &["V", "W"])).unwrap();
    assert_eq!((slave.master.as_deref(), slave.ha_address.as_deref()), (Some("r:1"), Some("ha")));
    assert_eq!(routes.of_topic("V"), None);
    // An address has one id.
    put(&header("r", 0, "r:2"), body(4, &["T", "U"])).unwrap();
    assert_eq!(routes.broker("r").unwrap().broker_addrs, BTreeMap::from([(0, "r:2".into())]));
}

#[test]
fn the_lowest_slave_may_act_for_a_master_that_is_away() {
    let (routes, now) = (Routes::new(), Instant::now());
    let acting =
        |id, address| RegisterBrokerRequestHeader { enable_acting_master: Some(true), ..header("r", id, address) };
    routes.register_remote(&acting(0, "r:0"), body(1, &["T", "U"]), 1, now).unwrap();
    routes.register_remote(&acting(1, "r:1"), body(1, &["T", "U"]), 2, now).unwrap();
    assert_eq!(perm(&routes, "T"), 6);
    routes.closed(1);
    assert_eq!(perm(&routes, "T"), 4);
}
