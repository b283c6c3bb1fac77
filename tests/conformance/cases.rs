//! The requests, in an order in which later ones meet what earlier ones left.

use super::answer::{self, Answers, Names};
use super::peer::Peer;
use rocketmq_sync::protocol::RequestCode;
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

type Field<'a> = (&'a str, &'a str);

struct Run<'a> {
    peer: Peer,
    name_server: &'a str,
    broker: &'a str,
    topic: String,
    group: String,
    client: String,
    names: Names,
    answers: Answers,
}

/// Asks everything once. Names of topics and groups are of this run alone.
pub fn run(name_server: &str, broker: &str) -> Answers {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let mark = format!("{}x{millis}", process::id());
    let (topic, group, client) = (format!("cft{mark}"), format!("cfg{mark}"), format!("cfc{mark}"));
    let names = vec![
        (mark.clone(), "MARK"),
        (broker.to_owned(), "BROKER"),
        (name_server.to_owned(), "NAMESERVER"),
        ("east-1@broker-a".to_owned(), "NAME"),
        ("broker-a".to_owned(), "NAME"),
    ];
    let peer = Peer::new();
    // A broker that has just started may not be registered yet.
    peer.wait_for(name_server, RequestCode::GET_BROKER_CLUSTER_INFO, &[], broker);
    let mut run =
        Run { peer, name_server, broker, topic, group, client, names: Names(names), answers: Answers::default() };
    run.topics();
    run.sends();
    run.members();
    run.pulls();
    run.offsets();
    run.locks();
    run.failed_messages();
    run.lookups();
    run.tables();
    run.routes();
    run.leaving();
    run.answers
}

impl Run<'_> {
    fn broker(&mut self, case: &str, code: RequestCode, fields: &[Field<'_>], body: &str) -> Option<String> {
        let answer = self.peer.ask(self.broker, code.0, fields, body);
        let id = answer.as_ref().ok().and_then(|answer| answer.ext_fields.get("msgId").map(str::to_owned));
        self.answers.add(case, answer::fields(&answer, &self.names));
        id
    }

    fn name_server(&mut self, case: &str, code: RequestCode, fields: &[Field<'_>]) {
        let answer = self.peer.ask(self.name_server, code.0, fields, "");
        self.answers.add(case, answer::fields(&answer, &self.names));
    }

    fn topics(&mut self) {
        let topic = self.topic.clone();
        let make = |name: &'static str, queues: &'static str, perm: &'static str| {
            vec![
                ("topic", name.to_owned()),
                ("defaultTopic", "TBW102".to_owned()),
                ("readQueueNums", queues.to_owned()),
                ("writeQueueNums", queues.to_owned()),
                ("perm", perm.to_owned()),
                ("topicFilterType", "SINGLE_TAG".to_owned()),
                ("topicSysFlag", "0".to_owned()),
                ("order", "false".to_owned()),
            ]
        };
        let cases = [
            ("topic: made", make("", "2", "6")),
            ("topic: made again with more queues", make("", "3", "6")),
            ("topic: a name with a blank", make("a b", "2", "6")),
            ("topic: a name of the system", make("SCHEDULE_TOPIC_XXXX", "2", "6")),
            ("topic: no permission bits", make("", "3", "0")),
            ("topic: readable and writable once more", make("", "3", "6")),
        ];
        for (case, mut fields) in cases {
            if fields[0].1.is_empty() {
                fields[0].1.clone_from(&topic);
            }
            let fields: Vec<Field<'_>> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            self.broker(case, RequestCode::UPDATE_AND_CREATE_TOPIC, &fields, "");
        }
        self.broker("topic: made without a header", RequestCode::UPDATE_AND_CREATE_TOPIC, &[], "");
        self.broker(
            "topic: its configuration",
            RequestCode::GET_TOPIC_CONFIG,
            &[("topic", &topic), ("lo", "true")],
            "",
        );
        self.broker(
            "topic: configuration of an unknown one",
            RequestCode::GET_TOPIC_CONFIG,
            &[("topic", "cfnone")],
            "",
        );
    }

    fn send(&mut self, case: &str, change: &[Field<'_>], body: &str) -> Option<String> {
        let (topic, group) = (self.topic.clone(), self.group.clone());
        let mut fields = vec![
            ("producerGroup", group.as_str()),
            ("topic", topic.as_str()),
            ("defaultTopic", "TBW102"),
            ("defaultTopicQueueNums", "4"),
            ("queueId", "0"),
            ("sysFlag", "0"),
            ("bornTimestamp", "1700000000000"),
            ("flag", "7"),
            ("properties", "KEYS\u{1}cfkey\u{2}TAGS\u{1}red\u{2}colour\u{1}5\u{2}"),
            ("reconsumeTimes", "0"),
            ("unitMode", "false"),
            ("batch", "false"),
        ];
        for (name, value) in change {
            fields.retain(|(known, _)| known != name);
            if !value.is_empty() {
                fields.push((name, value));
            }
        }
        self.broker(case, RequestCode::SEND_MESSAGE, &fields, body)
    }

    fn sends(&mut self) {
        for (case, change) in [
            ("send: to queue 0", vec![]),
            ("send: another tag", vec![("properties", "TAGS\u{1}blue\u{2}")]),
            ("send: without properties", vec![("properties", "")]),
            ("send: to the last queue", vec![("queueId", "2")]),
            ("send: to a queue that is not there", vec![("queueId", "9")]),
            ("send: without a topic", vec![("topic", "")]),
            ("send: without a queue", vec![("queueId", "")]),
            ("send: a number that is none", vec![("queueId", "x")]),
            ("send: to the schedule topic", vec![("topic", "SCHEDULE_TOPIC_XXXX")]),
            ("send: a topic name with a blank", vec![("topic", "a b")]),
            ("send: unknown topic, no default topic", vec![("topic", "cfnotopic"), ("defaultTopic", "cfnone")]),
        ] {
            self.send(case, &change, case);
        }
        // To a topic of its own: it may be delivered while the suite runs.
        let late = format!("{}late", self.topic);
        let change = [("topic", late.as_str()), ("properties", "DELAY\u{1}99\u{2}")];
        self.send("send: a delay level beyond the last", &change, "late");
        let one_queue = format!("{}one", self.topic);
        let change = [("topic", one_queue.as_str()), ("queueId", "-1"), ("defaultTopicQueueNums", "1")];
        self.send("send: to any queue of a topic that it makes", &change, "any");
        self.send("send: an empty body", &[("topic", one_queue.as_str())], "");
        let large = "x".repeat(5 << 20);
        self.send("send: a body above the limit", &[("queueId", "1")], &large);
    }

    fn heartbeat(&self, expression: &str, version: i64) -> String {
        let (topic, group, client) = (&self.topic, &self.group, &self.client);
        format!(
            r#"{{"clientID":"{client}","consumerDataSet":[{{"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"{group}","messageModel":"CLUSTERING","subscriptionDataSet":[{{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"{expression}","subVersion":{version},"tagsSet":[],"topic":"{topic}"}}],"unitMode":false}}],"producerDataSet":[{{"groupName":"{group}"}}]}}"#
        )
    }

    fn members(&mut self) {
        let group = self.group.clone();
        let list = [("consumerGroup", group.as_str())];
        self.broker("group: members of one that nobody joined", RequestCode::GET_CONSUMER_LIST_BY_GROUP, &list, "");
        self.broker("group: members without a header", RequestCode::GET_CONSUMER_LIST_BY_GROUP, &[], "");
        let text = self.heartbeat("*", 5);
        self.broker("heartbeat: first", RequestCode::HEART_BEAT, &[], &text);
        self.broker("heartbeat: again", RequestCode::HEART_BEAT, &[], &text);
        self.broker("heartbeat: empty", RequestCode::HEART_BEAT, &[], "");
        self.broker("heartbeat: not JSON", RequestCode::HEART_BEAT, &[], "{");
        self.broker("group: members", RequestCode::GET_CONSUMER_LIST_BY_GROUP, &list, "");
        self.broker("group: connections", RequestCode::GET_CONSUMER_CONNECTION_LIST, &list, "");
        let unknown = [("consumerGroup", "cfnogroup")];
        self.broker("group: connections of an unknown one", RequestCode::GET_CONSUMER_CONNECTION_LIST, &unknown, "");
        let producers = [("producerGroup", group.as_str())];
        self.broker("group: connections of producers", RequestCode::GET_PRODUCER_CONNECTION_LIST, &producers, "");
        let check = |kind: &str, expression: &str| {
            format!(
                r#"{{"clientId":"c","group":"{group}","namespace":"","subscriptionData":{{"classFilterMode":false,"codeSet":[],"expressionType":"{kind}","subString":"{expression}","subVersion":1,"tagsSet":[],"topic":"t"}}}}"#
            )
        };
        let code = RequestCode::CHECK_CLIENT_CONFIG;
        self.broker("client check: tags", code, &[], &check("TAG", "a || b"));
        self.broker("client check: SQL92", code, &[], &check("SQL92", "a > 1 AND b = 'x'"));
        self.broker("client check: wrong SQL92", code, &[], &check("SQL92", "a >"));
        self.broker("client check: unknown type", code, &[], &check("OTHER", "a"));
    }

    fn pull(&mut self, case: &str, change: &[Field<'_>]) {
        let (topic, group) = (self.topic.clone(), self.group.clone());
        let mut fields = vec![
            ("consumerGroup", group.as_str()),
            ("topic", topic.as_str()),
            ("queueId", "0"),
            ("queueOffset", "0"),
            ("maxMsgNums", "32"),
            ("sysFlag", "0"),
            ("commitOffset", "0"),
            ("suspendTimeoutMillis", "0"),
            ("subscription", "*"),
            ("subVersion", "5"),
            ("expressionType", "TAG"),
        ];
        for (name, value) in change {
            fields.retain(|(known, _)| known != name);
            if !value.is_empty() {
                fields.push((name, value));
            }
        }
        self.broker(case, RequestCode::PULL_MESSAGE, &fields, "");
    }

    fn pulls(&mut self) {
        let subscribed = ("sysFlag", "4");
        for (case, change) in [
            ("pull: from the start", vec![]),
            ("pull: one message", vec![("maxMsgNums", "1")]),
            ("pull: from the second", vec![("queueOffset", "1")]),
            ("pull: at the end", vec![("queueOffset", "3")]),
            ("pull: above the end", vec![("queueOffset", "99")]),
            ("pull: below the start", vec![("queueOffset", "-1")]),
            ("pull: an empty queue", vec![("queueId", "1"), ("queueOffset", "9")]),
            ("pull: a queue that is not there", vec![("queueId", "9")]),
            ("pull: a negative queue", vec![("queueId", "-1")]),
            ("pull: an unknown topic", vec![("topic", "cfnone")]),
            ("pull: an unknown group", vec![("consumerGroup", "cfnogroup")]),
            ("pull: a newer subscription", vec![("subVersion", "6")]),
            ("pull: an older subscription", vec![("subVersion", "4")]),
            ("pull: a subscription of its own", vec![subscribed, ("subscription", "red")]),
            ("pull: a tag that nobody sent", vec![subscribed, ("subscription", "green")]),
            (
                "pull: a condition of its own",
                vec![subscribed, ("subscription", "colour = '5'"), ("expressionType", "SQL92")],
            ),
            ("pull: without an offset", vec![("queueOffset", "")]),
            ("pull: commits on its way", vec![("sysFlag", "1"), ("commitOffset", "2")]),
        ] {
            self.pull(case, &change);
        }
    }

    fn offsets(&mut self) {
        let (topic, group) = (self.topic.clone(), self.group.clone());
        let of = |queue: &'static str| vec![("topic", topic.as_str()), ("queueId", queue)];
        let with = |queue: &'static str, more: &[Field<'static>]| [of(queue).as_slice(), more].concat();
        let group_of = |queue: &'static str| [of(queue).as_slice(), &[("consumerGroup", group.as_str())]].concat();
        let query = RequestCode::QUERY_CONSUMER_OFFSET;
        self.broker("offset: after a pull that committed", query, &group_of("0"), "");
        self.broker("offset: of a queue without one", query, &group_of("2"), "");
        self.broker("offset: of a queue that is not there", query, &group_of("9"), "");
        let strict = [group_of("2").as_slice(), &[("setZeroIfNotFound", "false")]].concat();
        self.broker("offset: absent, not to be made zero", query, &strict, "");
        let update = RequestCode::UPDATE_CONSUMER_OFFSET;
        let stored = [group_of("2").as_slice(), &[("commitOffset", "1")]].concat();
        self.broker("offset: stored", update, &stored, "");
        self.broker("offset: as stored", query, &group_of("2"), "");
        self.broker("offset: stored without a value", update, &group_of("2"), "");
        self.broker("offset: the end", RequestCode::GET_MAX_OFFSET, &of("0"), "");
        self.broker("offset: the end of an empty queue", RequestCode::GET_MAX_OFFSET, &of("1"), "");
        self.broker("offset: the end of a queue that is not there", RequestCode::GET_MAX_OFFSET, &of("9"), "");
        self.broker("offset: the start", RequestCode::GET_MIN_OFFSET, &of("0"), "");
        self.broker("offset: the start of a queue that is not there", RequestCode::GET_MIN_OFFSET, &of("9"), "");
        let search = RequestCode::SEARCH_OFFSET_BY_TIMESTAMP;
        self.broker("offset: by a time before all", search, &with("0", &[("timestamp", "0")]), "");
        self.broker("offset: by a time after all", search, &with("0", &[("timestamp", "4000000000000")]), "");
        self.broker("offset: by time in an empty queue", search, &with("1", &[("timestamp", "0")]), "");
        let earliest = RequestCode::GET_EARLIEST_MSG_STORETIME;
        self.broker("offset: the time of the first message", earliest, &of("0"), "");
        self.broker("offset: the time of an empty queue", earliest, &of("9"), "");
    }

    fn locks(&mut self) {
        let (topic, group) = (self.topic.clone(), self.group.clone());
        let body = |client: &str| {
            format!(
                r#"{{"clientId":"{client}","consumerGroup":"{group}","mqSet":[{{"brokerName":"b","queueId":0,"topic":"{topic}"}}]}}"#
            )
        };
        let (ours, theirs) = (body("one"), body("two"));
        self.broker("lock: granted", RequestCode::LOCK_BATCH_MQ, &[], &ours);
        self.broker("lock: again by its owner", RequestCode::LOCK_BATCH_MQ, &[], &ours);
        self.broker("lock: by another", RequestCode::LOCK_BATCH_MQ, &[], &theirs);
        self.broker("unlock: by another", RequestCode::UNLOCK_BATCH_MQ, &[], &theirs);
        self.broker("lock: still by another", RequestCode::LOCK_BATCH_MQ, &[], &theirs);
        self.broker("unlock: by its owner", RequestCode::UNLOCK_BATCH_MQ, &[], &ours);
        self.broker("lock: free again", RequestCode::LOCK_BATCH_MQ, &[], &theirs);
    }

    fn failed_messages(&mut self) {
        let (topic, group) = (self.topic.clone(), self.group.clone());
        let id = self.send("send: one to be sent back", &[], "one to be sent back").unwrap();
        // The second half of an offset message id is the position in the log.
        let position = i64::from_str_radix(&id[16..], 16).unwrap().to_string();
        let back = |offset: &str, group: &str, level: &str| {
            [("offset", offset), ("group", group), ("delayLevel", level), ("originTopic", &topic)]
                .map(|(name, value)| (name, value.to_owned()))
                .to_vec()
        };
        let cases = [
            ("send back: to the dead letters", back(&position, &group, "-1")),
            ("send back: with a delay", back(&position, &group, "3")),
            ("send back: an offset that is none", back("99999999999", &group, "0")),
            ("send back: of an unknown group", back(&position, "cfnogroup", "0")),
        ];
        for (case, fields) in cases {
            let mut fields: Vec<Field<'_>> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            fields.extend([("maxReconsumeTimes", "16"), ("unitMode", "false"), ("originMsgId", "x")]);
            self.broker(case, RequestCode::CONSUMER_SEND_MSG_BACK, &fields, "");
        }
        self.broker("view: by its position", RequestCode::VIEW_MESSAGE_BY_ID, &[("offset", &position)], "");
        self.broker("view: a position that is none", RequestCode::VIEW_MESSAGE_BY_ID, &[("offset", "99999999999")], "");
    }

    fn lookups(&mut self) {
        let topic = self.topic.clone();
        let query = |key: &'static str| {
            vec![
                ("topic", topic.as_str()),
                ("key", key),
                ("maxNum", "1"),
                ("beginTimestamp", "0"),
                ("endTimestamp", "4000000000000"),
            ]
        };
        self.broker("query: a key that nobody sent", RequestCode::QUERY_MESSAGE, &query("cfnokey"), "");
        self.broker("query: without a header", RequestCode::QUERY_MESSAGE, &[], "");
        let end = [("producerGroup", "cfp"), ("tranStateTableOffset", "0"), ("commitLogOffset", "99999999999")];
        let more =
            [("commitOrRollback", "8"), ("fromTransactionCheck", "false"), ("msgId", "x"), ("transactionId", "y")];
        let fields = [end.as_slice(), &more].concat();
        self.broker("transaction: committed at a position that is none", RequestCode::END_TRANSACTION, &fields, "");
    }

    fn tables(&mut self) {
        let (topic, group) = (self.topic.clone(), self.group.clone());
        self.broker("table: of the topic", RequestCode::GET_TOPIC_STATS_INFO, &[("topic", &topic)], "");
        self.broker("table: of an unknown topic", RequestCode::GET_TOPIC_STATS_INFO, &[("topic", "cfnone")], "");
        let of = [("consumerGroup", group.as_str()), ("topic", topic.as_str())];
        self.broker("table: of the group", RequestCode::GET_CONSUME_STATS, &of, "");
        self.broker("table: who reads the topic", RequestCode::QUERY_TOPIC_CONSUME_BY_WHO, &[("topic", &topic)], "");
        self.broker("table: what the group reads", RequestCode::QUERY_TOPICS_BY_CONSUMER, &[("group", &group)], "");
        let which = [("group", group.as_str()), ("topic", topic.as_str())];
        self.broker("table: the subscription", RequestCode::QUERY_SUBSCRIPTION_BY_CONSUMER, &which, "");
        let nobody = [("consumerGroup", group.as_str()), ("clientId", "cfnobody"), ("jstackEnable", "false")];
        self.broker("relay: running info of nobody", RequestCode::GET_CONSUMER_RUNNING_INFO, &nobody, "");
        let reset = [("topic", topic.as_str()), ("group", "cfnogroup"), ("timestamp", "0"), ("isForce", "true")];
        self.broker("relay: reset of an unknown group", RequestCode::INVOKE_BROKER_TO_RESET_OFFSET, &reset, "");
        self.broker("request: a code that is none", RequestCode(54_321), &[], "");
    }

    fn routes(&mut self) {
        let topic = self.topic.clone();
        let route = RequestCode::GET_ROUTEINFO_BY_TOPIC;
        self.peer.wait_for(self.name_server, route, &[("topic", &topic)], self.broker);
        self.name_server("route: unknown topic", route, &[("topic", "cfnone")]);
        self.name_server("route: no topic", route, &[]);
        self.name_server("route: the topic", route, &[("topic", &topic), ("acceptStandardJsonOnly", "true")]);
        self.name_server("route: the topic in the older form", route, &[("topic", &topic)]);
        self.name_server("name server: the cluster", RequestCode::GET_BROKER_CLUSTER_INFO, &[]);
        self.name_server("name server: a code that is none", RequestCode(54_321), &[]);
        let key = [("namespace", "ORDER_TOPIC_CONFIG"), ("key", "cfnone")];
        self.name_server("name server: a key that is not there", RequestCode::GET_KV_CONFIG, &key);
    }

    fn leaving(&mut self) {
        let (topic, group, client) = (self.topic.clone(), self.group.clone(), self.client.clone());
        let leave =
            [("clientID", client.as_str()), ("consumerGroup", group.as_str()), ("producerGroup", group.as_str())];
        self.broker("leave", RequestCode::UNREGISTER_CLIENT, &leave, "");
        self.broker("leave: again", RequestCode::UNREGISTER_CLIENT, &leave, "");
        self.broker("leave: without a header", RequestCode::UNREGISTER_CLIENT, &[], "");
        let list = [("consumerGroup", group.as_str())];
        self.broker("group: members after the last left", RequestCode::GET_CONSUMER_LIST_BY_GROUP, &list, "");
        self.broker("topic: deleted", RequestCode::DELETE_TOPIC_IN_BROKER, &[("topic", &topic)], "");
        self.broker("topic: deleted again", RequestCode::DELETE_TOPIC_IN_BROKER, &[("topic", &topic)], "");
    }
}
