//! A raw client, and shorthands for the requests that most tests send.

use bytes::Bytes;
use crossbeam::channel::{Receiver, Sender, unbounded};
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::store_codec::{DecodeOptions, decode_all};
use rocketmq_sync::message::{MessageExt, properties};
use rocketmq_sync::protocol::body::{ConsumeType, ConsumerData, HeartbeatData, MessageModel, ProducerData};
use rocketmq_sync::protocol::header::{
    GetConsumerListByGroupRequestHeader, GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader, GetMinOffsetResponseHeader, PullMessageRequestHeader, PullMessageResponseHeader,
    SendMessageRequestHeader, SendMessageResponseHeader,
};
use rocketmq_sync::protocol::{CommandHeader, RemotingCommand, RequestCode, ResponseCode, SubscriptionData};
use rocketmq_sync::remoting::{ConnectionHandle, RemotingClient, RemotingConfig, RequestProcessor};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; a test that waits so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

type Responder = Box<dyn Fn(&RemotingCommand) -> Option<RemotingCommand> + Send + Sync>;

struct Inbox {
    pushed: Sender<RemotingCommand>,
    respond: Responder,
}

impl RequestProcessor for Inbox {
    fn process(&self, _: &ConnectionHandle, request: RemotingCommand) -> Option<RemotingCommand> {
        let answer = (self.respond)(&request);
        // The receiver is gone when its test is over.
        let _ = self.pushed.send(request);
        answer
    }
}

/// One client with a connection of its own to one address.
pub(crate) struct Peer {
    pub(crate) client: RemotingClient,
    pub(crate) address: Arc<str>,
    pub(crate) pushed: Receiver<RemotingCommand>,
}

pub(crate) type Pulled = (PullMessageResponseHeader, Vec<MessageExt>);

impl Peer {
    pub(crate) fn new(address: impl Into<Arc<str>>) -> Self {
        Self::answering(address, |_| None)
    }

    /// A client that answers requests of the broker.
    pub(crate) fn answering(
        address: impl Into<Arc<str>>,
        respond: impl Fn(&RemotingCommand) -> Option<RemotingCommand> + Send + Sync + 'static,
    ) -> Self {
        let (sender, pushed) = unbounded();
        let inbox = Arc::new(Inbox { pushed: sender, respond: Box::new(respond) });
        let client = RemotingClient::start("test", RemotingConfig::default(), inbox).unwrap();
        Self { client, address: address.into(), pushed }
    }

    #[track_caller]
    pub(crate) fn invoke(&self, command: RemotingCommand) -> RemotingCommand {
        self.client.invoke(&self.address, command, PATIENCE).unwrap()
    }

    #[track_caller]
    pub(crate) fn call<'a>(&self, code: RequestCode, header: &impl CommandHeader<'a>) -> RemotingCommand {
        self.invoke(RemotingCommand::request(code, header))
    }

    #[track_caller]
    pub(crate) fn call_with_body(&self, code: RequestCode, body: impl Into<Bytes>) -> RemotingCommand {
        self.invoke(RemotingCommand::request_without_header(code).with_body(body.into()))
    }

    /// Sends without waiting; the answer comes out of the channel.
    pub(crate) fn start(&self, command: RemotingCommand) -> Receiver<RemotingCommand> {
        let (sender, receiver) = unbounded();
        self.client.invoke_async(&self.address, command, PATIENCE, move |answer| {
            if let Ok(answer) = answer {
                let _ = sender.send(answer);
            }
        });
        receiver
    }

    pub(crate) fn send_as(&self, header: SendMessageRequestHeader<'_>, body: &str) -> RemotingCommand {
        let request = RemotingCommand::request(RequestCode::SEND_MESSAGE_V2, &header);
        self.invoke(request.with_body(Bytes::copy_from_slice(body.as_bytes())))
    }

    /// Sends one message; returns its offset message id and queue offset.
    #[track_caller]
    pub(crate) fn send(&self, topic: &str, queue_id: i32, body: &str, properties: &[(&str, &str)]) -> (String, i64) {
        let text = property_string(properties);
        let header = SendMessageRequestHeader { queue_id, properties: Some(&text), ..send_header(topic) };
        let answer = self.send_as(header, body);
        assert_eq!(answer.response_code(), ResponseCode::SUCCESS, "{:?}", answer.remark);
        let header: SendMessageResponseHeader<'_> = answer.header().unwrap();
        (header.msg_id.to_owned(), header.queue_offset)
    }

    pub(crate) fn pull_as(&self, header: &PullMessageRequestHeader<'_>) -> RemotingCommand {
        self.call(RequestCode::PULL_MESSAGE, header)
    }

    /// All messages of a queue from `offset` that one pull brings.
    #[track_caller]
    pub(crate) fn pull(&self, topic: &str, queue_id: i32, offset: i64) -> Vec<MessageExt> {
        let header = PullMessageRequestHeader { queue_id, queue_offset: offset, ..pull_header("READER", topic) };
        let answer = self.pull_as(&header);
        if answer.response_code() == ResponseCode::SUCCESS { pulled(&answer).1 } else { Vec::new() }
    }

    #[track_caller]
    pub(crate) fn bodies(&self, topic: &str, queue_id: i32) -> Vec<String> {
        self.pull(topic, queue_id, 0).iter().map(body).collect()
    }

    #[track_caller]
    pub(crate) fn heartbeat(&self, client_id: &str, group: &str, topics: &[&str]) -> RemotingCommand {
        self.beat(&heartbeat(client_id, group, topics))
    }

    #[track_caller]
    pub(crate) fn beat(&self, beat: &HeartbeatData) -> RemotingCommand {
        let answer = self.call_with_body(RequestCode::HEART_BEAT, beat.encode());
        assert_eq!(answer.response_code(), ResponseCode::SUCCESS, "{:?}", answer.remark);
        answer
    }

    /// Waits for the notice that the group has changed.
    #[track_caller]
    pub(crate) fn expect_notice(&self, group: &str) {
        let request = self.pushed.recv_timeout(PATIENCE).expect("a notice");
        assert_eq!(request.request_code(), RequestCode::NOTIFY_CONSUMER_IDS_CHANGED);
        assert!(request.is_oneway());
        assert_eq!(request.ext_fields.get("consumerGroup"), Some(group));
    }

    /// Checks that no request of the broker is there. The broker sends notices before it answers the request that made
    /// them, so after an answer on this connection nothing can be under way.
    #[track_caller]
    pub(crate) fn expect_silence(&self) {
        self.max_offset("any", 0);
        assert!(self.pushed.is_empty(), "unexpected: {:?}", self.pushed.try_recv());
    }

    #[track_caller]
    pub(crate) fn max_offset(&self, topic: &str, queue_id: i32) -> i64 {
        let header = GetMaxOffsetRequestHeader { topic, queue_id, committed: true, bname: None };
        let answer = self.call(RequestCode::GET_MAX_OFFSET, &header);
        answer.header::<GetMaxOffsetResponseHeader>().unwrap().offset
    }

    #[track_caller]
    pub(crate) fn min_offset(&self, topic: &str, queue_id: i32) -> i64 {
        let header = GetMinOffsetRequestHeader { topic, queue_id, bname: None };
        let answer = self.call(RequestCode::GET_MIN_OFFSET, &header);
        answer.header::<GetMinOffsetResponseHeader>().unwrap().offset
    }

    pub(crate) fn members(&self, group: &str) -> RemotingCommand {
        let header = GetConsumerListByGroupRequestHeader { consumer_group: group };
        self.call(RequestCode::GET_CONSUMER_LIST_BY_GROUP, &header)
    }
}

/// A client of the (first) broker.
pub(crate) fn peer(cluster: &EmbeddedCluster) -> Peer {
    Peer::new(address(cluster))
}

pub(crate) fn address(cluster: &EmbeddedCluster) -> String {
    cluster.broker_address(cluster.broker_names()[0]).unwrap().to_string()
}

pub(crate) fn send_header(topic: &str) -> SendMessageRequestHeader<'_> {
    SendMessageRequestHeader {
        producer_group: "PG",
        topic,
        default_topic: "TBW102",
        default_topic_queue_nums: 4,
        born_timestamp: 1_700_000_000_000,
        ..SendMessageRequestHeader::default()
    }
}

/// A pull that brings its own subscription to everything and does not wait.
pub(crate) fn pull_header<'a>(group: &'a str, topic: &'a str) -> PullMessageRequestHeader<'a> {
    PullMessageRequestHeader {
        consumer_group: group,
        topic,
        queue_id: 0,
        queue_offset: 0,
        max_msg_nums: 32,
        sys_flag: 4,
        commit_offset: 0,
        suspend_timeout_millis: 15_000,
        subscription: Some("*"),
        sub_version: 0,
        expression_type: Some("TAG"),
        max_msg_bytes: None,
        bname: None,
    }
}

#[track_caller]
pub(crate) fn pulled(answer: &RemotingCommand) -> Pulled {
    let decoded = decode_all(&answer.body, None, 0, &DecodeOptions::default());
    assert!(decoded.damage.is_none(), "{:?}", decoded.damage);
    (answer.header().unwrap(), decoded.messages)
}

pub(crate) fn body(message: &MessageExt) -> String {
    String::from_utf8(message.body().to_vec()).unwrap()
}

pub(crate) fn property_string(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    properties::encode(pairs.iter().copied(), &mut text);
    text
}

pub(crate) fn property_map(message: &MessageExt) -> BTreeMap<&str, &str> {
    message.properties().collect()
}

pub(crate) fn heartbeat(client_id: &str, group: &str, topics: &[&str]) -> HeartbeatData {
    let subscriptions = topics.iter().map(|topic| SubscriptionData::tag_expression(topic, "*", 1).unwrap()).collect();
    HeartbeatData {
        client_id: client_id.into(),
        consumer_data_set: vec![ConsumerData {
            consume_type: ConsumeType::Passively,
            group_name: group.into(),
            message_model: MessageModel::Clustering,
            subscription_data_set: subscriptions,
            ..ConsumerData::default()
        }],
        producer_data_set: vec![ProducerData { group_name: "PG".into() }],
        ..HeartbeatData::default()
    }
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

#[track_caller]
pub(crate) fn expect_code(answer: &RemotingCommand, code: ResponseCode) {
    assert_eq!(answer.response_code(), code, "{:?}", answer.remark);
}
