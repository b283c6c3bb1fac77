//! A scripted cluster in one server: name server and broker on one address, which records what it is asked.

use bytes::Bytes;
use rocketmq_sync::message::store_codec::{StoredFields, encode_stored};
use rocketmq_sync::protocol::body::{
    BrokerData, GetConsumerListByGroupResponseBody, HeartbeatData, LockBatchRequestBody, LockBatchResponseBody,
    QueueData, TopicRouteData,
};
use rocketmq_sync::protocol::header::*;
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::{
    ConnectionHandle, Dispatch, RemotingConfig, RemotingServer, RequestProcessor, unsupported,
};
use rocketmq_sync::thread::Timer;
use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, MessageExt, Producer, PushConsumer,
    PushConsumerBuilder,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Far beyond what anything here takes; a test that needs it has failed.
pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const TOPIC: &str = "orders";
pub(crate) const GROUP: &str = "g";

/// Waits for a condition.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {LONG:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One request, as the broker saw it.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) connection: ConnectionHandle,
    pub(crate) command: RemotingCommand,
    /// How many requests of this code came before it.
    pub(crate) before: usize,
}

impl Asked {
    pub(crate) fn is(&self, code: RequestCode) -> bool {
        self.command.request_code() == code
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.command.ext_fields.get(name).unwrap_or_default()
    }

    pub(crate) fn number(&self, name: &str) -> i64 {
        self.field(name).parse().unwrap_or(i64::MIN)
    }

    /// Whether it concerns the tests' topic, not the group's retry topic.
    pub(crate) fn of_topic(&self) -> bool {
        self.field("topic") == TOPIC
    }

    pub(crate) fn is_pull(&self) -> bool {
        self.is(RequestCode::PULL_MESSAGE) && self.of_topic()
    }

    pub(crate) fn is_commit(&self) -> bool {
        self.is(RequestCode::UPDATE_CONSUMER_OFFSET) && self.of_topic()
    }
}

/// What a script makes the broker do.
pub(crate) enum Reply {
    /// As a broker in good health.
    Usual,
    /// The same, later.
    UsualAfter(Duration),
    Give(RemotingCommand),
    GiveAfter(Duration, RemotingCommand),
    Nothing,
    Close,
}

pub(crate) type Script = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) routes: BTreeMap<String, TopicRouteData>,
    /// Of queue (broker's topic and id), what is stored there.
    pub(crate) messages: BTreeMap<(String, i32), Vec<Bytes>>,
    pub(crate) first_offset: BTreeMap<(String, i32), i64>,
    pub(crate) offsets: BTreeMap<(String, i32), i64>,
    pub(crate) members: BTreeSet<String>,
    asked: Vec<Asked>,
    counts: BTreeMap<i32, usize>,
    script: Option<Script>,
    connections: BTreeMap<u64, ConnectionHandle>,
    pub(crate) accepted: usize,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    timer: Timer,
}

pub(crate) struct Fake {
    pub(crate) name: &'static str,
    shared: Arc<Shared>,
    server: RemotingServer,
}

impl Fake {
    /// A broker that serves `TOPIC` with this many queues, and is its own name server.
    pub(crate) fn start(queues: i32) -> Self {
        let fake = Self::bare("a", "127.0.0.1:0".parse().unwrap());
        fake.state().routes.insert(TOPIC.into(), route(&[(fake.name, 0, &fake.address())], queues));
        fake
    }

    /// One without any route.
    pub(crate) fn bare(name: &'static str, bind: SocketAddr) -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), timer: Timer::start("fake-timer").unwrap() });
        let server = RemotingServer::start(
            "fake",
            &[bind],
            RemotingConfig::default(),
            Arc::new(Processor(shared.clone())),
            Dispatch::Pool(4),
        );
        Self { name, shared, server: server.unwrap() }
    }

    pub(crate) fn address(&self) -> String {
        self.server.local_addrs()[0].to_string()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    pub(crate) fn script(&self, script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) {
        self.state().script = Some(Arc::new(script));
    }

    pub(crate) fn asked(&self, which: impl Fn(&Asked) -> bool) -> Vec<Asked> {
        self.state().asked.iter().filter(|asked| which(asked)).cloned().collect()
    }

    pub(crate) fn count(&self, code: RequestCode) -> usize {
        self.state().counts.get(&code.0).copied().unwrap_or(0)
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, which: impl Fn(&Asked) -> bool) -> Asked {
        let mut found = None;
        wait_until(what, || {
            found = self.state().asked.iter().find(|asked| which(asked)).cloned();
            found.is_some()
        });
        found.unwrap()
    }

    pub(crate) fn connections(&self) -> Vec<ConnectionHandle> {
        self.state().connections.values().cloned().collect()
    }

    /// Stores messages whose bodies are the numbers of the range.
    pub(crate) fn store(&self, queue_id: i32, range: std::ops::Range<i64>) {
        let mut state = self.state();
        let key = (TOPIC.to_owned(), queue_id);
        state.first_offset.entry(key.clone()).or_insert(range.start);
        let records = range.map(|offset| record(queue_id, offset, offset.to_string().as_bytes(), 0));
        state.messages.entry(key).or_default().extend(records);
    }

    pub(crate) fn commit_of(&self, queue_id: i32) -> Option<i64> {
        self.state().offsets.get(&(TOPIC.to_owned(), queue_id)).copied()
    }

    pub(crate) fn consumer(&self) -> PushConsumerBuilder {
        PushConsumer::builder(GROUP)
            .name_servers(self.address())
            .subscribe(TOPIC, "*")
            .consume_from(ConsumeFromWhere::FirstOffset)
            .consume_threads(4)
            .persist_interval(Duration::from_millis(50))
            .pull_error_delay(Duration::from_millis(50))
    }

    pub(crate) fn producer(&self) -> Producer {
        Producer::builder("p").name_servers(self.address()).start().unwrap()
    }
}

/// A route: broker name, id and address of each broker.
pub(crate) fn route(brokers: &[(&str, i64, &str)], queues: i32) -> TopicRouteData {
    let mut data: BTreeMap<&str, BrokerData> = BTreeMap::new();
    for (name, id, address) in brokers {
        let broker = data.entry(name).or_default();
        broker.broker_name = (*name).into();
        broker.cluster = "c".into();
        broker.broker_addrs.insert(*id, (*address).into());
    }
    let queues = data.keys().map(|name| QueueData {
        broker_name: (*name).into(),
        perm: 6,
        read_queue_nums: queues,
        write_queue_nums: queues,
        ..QueueData::default()
    });
    TopicRouteData { queue_datas: queues.collect(), broker_datas: data.into_values().collect(), ..Default::default() }
}

/// A stored message.
pub(crate) fn record(queue_id: i32, offset: i64, body: &[u8], sys_flag: i32) -> Bytes {
    let fields = StoredFields {
        queue_id,
        queue_offset: offset,
        commit_log_offset: offset.wrapping_add(1_000_000),
        sys_flag,
        ..StoredFields::new(TOPIC, body, "")
    };
    let mut out = Vec::new();
    encode_stored(&fields, &mut out).unwrap();
    out.into()
}

pub(crate) fn pull_answer(code: ResponseCode, next: i64, min: i64, max: i64, body: Bytes) -> RemotingCommand {
    let header = PullMessageResponseHeader {
        suggest_which_broker_id: 0,
        next_begin_offset: next,
        min_offset: min,
        max_offset: max,
        offset_delta: None,
        topic_sys_flag: None,
        group_sys_flag: None,
        forbidden_type: None,
    };
    RemotingCommand::response_with(code, &header).with_body(body)
}

pub(crate) fn refuse(code: ResponseCode) -> RemotingCommand {
    RemotingCommand::response(code, Some("on purpose".into()))
}

/// A listener that takes everything and tells the bodies.
pub(crate) fn collecting() -> (
    impl Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus + Send + Sync + 'static,
    Receiver<String>,
) {
    deciding(|_| ConsumeConcurrentlyStatus::ConsumeSuccess)
}

/// One that decides for each message, and tells the bodies before it does.
pub(crate) fn deciding(
    decide: impl Fn(&MessageExt) -> ConsumeConcurrentlyStatus + Send + Sync + 'static,
) -> (
    impl Fn(&[MessageExt], &mut ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus + Send + Sync + 'static,
    Receiver<String>,
) {
    let (sender, seen) = channel();
    let listener = move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
        let mut status = ConsumeConcurrentlyStatus::ConsumeSuccess;
        for message in messages {
            // A test that has seen enough is gone.
            let _ = sender.send(String::from_utf8_lossy(message.body()).into_owned());
            if decide(message) == ConsumeConcurrentlyStatus::ReconsumeLater {
                status = ConsumeConcurrentlyStatus::ReconsumeLater;
            }
        }
        status
    };
    (listener, seen)
}

/// The next so many bodies.
#[track_caller]
pub(crate) fn take(seen: &Receiver<String>, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < count {
        match seen.recv_timeout(LONG) {
            Ok(body) => all.push(body),
            Err(_) => panic!("{count} deliveries expected, these came: {all:?}"),
        }
    }
    all
}

struct Processor(Arc<Shared>);

impl RequestProcessor for Processor {
    fn process(&self, connection: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let shared = &self.0;
        let (asked, script) = {
            let mut state = lock(&shared.state);
            let count = state.counts.entry(request.code).or_default();
            let asked = Asked { connection: connection.clone(), command: request, before: *count };
            *count += 1;
            state.asked.push(asked.clone());
            (asked, state.script.clone())
        };
        match script.map_or(Reply::Usual, |script| script(&asked)) {
            Reply::Usual => shared.usual(&asked),
            Reply::UsualAfter(delay) => {
                let (owner, asked) = (shared.clone(), asked);
                shared.timer.schedule(delay, move || {
                    if let Some(answer) = owner.usual(&asked) {
                        answer_later(&asked, answer);
                    }
                });
                None
            }
            Reply::Give(answer) => Some(answer),
            Reply::GiveAfter(delay, answer) => {
                shared.timer.schedule(delay, move || answer_later(&asked, answer));
                None
            }
            Reply::Nothing => None,
            Reply::Close => {
                connection.close();
                None
            }
        }
    }

    fn connected(&self, connection: &ConnectionHandle) {
        let mut state = lock(&self.0.state);
        state.accepted += 1;
        state.connections.insert(connection.id(), connection.clone());
    }

    fn disconnected(&self, connection: &ConnectionHandle) {
        lock(&self.0.state).connections.remove(&connection.id());
    }
}

/// Answers a request that was put off.
pub(crate) fn answer_later(asked: &Asked, mut answer: RemotingCommand) {
    answer.opaque = asked.command.opaque;
    answer.flag |= 1;
    // The client may be gone.
    let _ = asked.connection.send(answer);
}

impl Shared {
    /// What a broker in good health answers; none: later.
    fn usual(&self, asked: &Asked) -> Option<RemotingCommand> {
        let mut state = lock(&self.state);
        let done = || RemotingCommand::response(ResponseCode::SUCCESS, None);
        let key = (asked.field("topic").to_owned(), asked.number("queueId") as i32);
        let first = state.first_offset.get(&key).copied().unwrap_or(0);
        let end = first + state.messages.get(&key).map_or(0, |messages| messages.len() as i64);
        Some(match asked.command.request_code() {
            RequestCode::GET_ROUTEINFO_BY_TOPIC => match state.routes.get(asked.field("topic")) {
                Some(route) => done().with_body(route.encode()),
                None => refuse(ResponseCode::TOPIC_NOT_EXIST),
            },
            RequestCode::HEART_BEAT => {
                let beat = HeartbeatData::decode(&asked.command.body).unwrap();
                if !beat.consumer_data_set.is_empty() {
                    state.members.insert(beat.client_id);
                }
                done()
            }
            RequestCode::UNREGISTER_CLIENT => {
                state.members.remove(asked.field("clientID"));
                done()
            }
            RequestCode::GET_CONSUMER_LIST_BY_GROUP => {
                let ids = state.members.iter().map(|id| id.as_str().into()).collect();
                let body = GetConsumerListByGroupResponseBody { consumer_id_list: ids };
                done().with_body(body.encode())
            }
            RequestCode::QUERY_CONSUMER_OFFSET => match state.offsets.get(&key) {
                Some(offset) => RemotingCommand::response_with(
                    ResponseCode::SUCCESS,
                    &QueryConsumerOffsetResponseHeader { offset: *offset },
                ),
                None => refuse(ResponseCode::QUERY_NOT_FOUND),
            },
            RequestCode::UPDATE_CONSUMER_OFFSET => {
                state.offsets.insert(key, asked.number("commitOffset"));
                done()
            }
            RequestCode::GET_MAX_OFFSET => {
                RemotingCommand::response_with(ResponseCode::SUCCESS, &GetMaxOffsetResponseHeader { offset: end })
            }
            RequestCode::PULL_MESSAGE => {
                let at = asked.number("queueOffset");
                if at < end && at >= first {
                    let most = asked.number("maxMsgNums").clamp(1, 32) as usize;
                    let records = &state.messages[&key];
                    let from = (at - first) as usize;
                    let to = records.len().min(from + most);
                    let body = records[from..to].concat();
                    return Some(pull_answer(ResponseCode::SUCCESS, first + to as i64, first, end, body.into()));
                }
                if at < first || at > end {
                    return Some(pull_answer(ResponseCode::PULL_OFFSET_MOVED, first, first, end, Bytes::new()));
                }
                // Held for a little, as brokers do.
                let asked = asked.clone();
                self.timer.schedule(Duration::from_millis(100), move || {
                    answer_later(&asked, pull_answer(ResponseCode::PULL_NOT_FOUND, at, first, end, Bytes::new()));
                });
                return None;
            }
            RequestCode::CONSUMER_SEND_MSG_BACK | RequestCode::UNLOCK_BATCH_MQ => done(),
            RequestCode::LOCK_BATCH_MQ => {
                let asked = LockBatchRequestBody::decode(&asked.command.body).unwrap();
                done().with_body(LockBatchResponseBody { lock_ok_mq_set: asked.mq_set }.encode())
            }
            RequestCode::SEND_MESSAGE | RequestCode::SEND_MESSAGE_V2 | RequestCode::SEND_BATCH_MESSAGE => {
                let mut answer = done();
                answer.ext_fields.put("msgId", "7F0000010000271100000000000000AA");
                answer.ext_fields.put("queueId", "0");
                answer.ext_fields.put("queueOffset", "5");
                answer
            }
            other => unsupported(other),
        })
    }
}
