//! A raw client that asks a broker what an administrator's tool asks.

use crate::support::LONG;
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::protocol::body::{ConsumeMessageDirectlyResult, ConsumerRunningInfo};
use rocketmq_sync::protocol::header::{ConsumeMessageDirectlyResultRequestHeader, GetConsumerRunningInfoRequestHeader};
use rocketmq_sync::protocol::{CommandHeader, RemotingCommand, RequestCode, ResponseCode};
use rocketmq_sync::remoting::{NoRequests, RemotingClient, RemotingConfig};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

pub struct Tool {
    client: RemotingClient,
    broker: Arc<str>,
}

impl Tool {
    pub fn new(cluster: &EmbeddedCluster) -> Self {
        let client = RemotingClient::start("tool", RemotingConfig::default(), Arc::new(NoRequests)).unwrap();
        Self { client, broker: Arc::from(cluster.broker_address("broker-a").unwrap().to_string()) }
    }

    pub fn call<'a>(&self, code: RequestCode, header: &impl CommandHeader<'a>) -> RemotingCommand {
        self.client.invoke(&self.broker, RemotingCommand::request(code, header), LONG).unwrap()
    }

    pub fn running_info(&self, group: &str, client_id: &str, jstack_enable: bool) -> ConsumerRunningInfo {
        let header = GetConsumerRunningInfoRequestHeader { consumer_group: group, client_id, jstack_enable };
        let answer = self.call(RequestCode::GET_CONSUMER_RUNNING_INFO, &header);
        assert_eq!(answer.response_code(), ResponseCode::SUCCESS, "{answer:?}");
        ConsumerRunningInfo::decode(&answer.body).unwrap()
    }

    /// Asks for a message to be consumed; the answer comes out of the channel.
    pub fn start_directly(&self, group: &str, client_id: &str, msg_id: &str) -> Receiver<RemotingCommand> {
        let header = ConsumeMessageDirectlyResultRequestHeader {
            consumer_group: group,
            client_id: Some(client_id),
            msg_id: Some(msg_id),
            broker_name: None,
            topic: None,
            topic_sys_flag: None,
            group_sys_flag: None,
        };
        let (sender, receiver) = channel();
        let request = RemotingCommand::request(RequestCode::CONSUME_MESSAGE_DIRECTLY, &header);
        self.client.invoke_async(&self.broker, request, LONG, move |answer| {
            // No answer comes when the tool is gone first, and nobody waits for one when the test is over.
            if let Ok(answer) = answer {
                let _ = sender.send(answer);
            }
        });
        receiver
    }

    pub fn directly(&self, group: &str, client_id: &str, msg_id: &str) -> ConsumeMessageDirectlyResult {
        let answer = self.start_directly(group, client_id, msg_id).recv_timeout(LONG).unwrap();
        assert_eq!(answer.response_code(), ResponseCode::SUCCESS, "{answer:?}");
        ConsumeMessageDirectlyResult::decode(&answer.body).unwrap()
    }
}
