use crate::support::{Peer, address, expect_code, peer};
use bytes::Bytes;
use rocketmq_sync::EmbeddedCluster;
use rocketmq_sync::message::MessageQueue;
use rocketmq_sync::message::store_codec::{DecodeOptions, decode_one};
use rocketmq_sync::protocol::body::GetConsumerStatusBody;
use rocketmq_sync::protocol::header::{
    ConsumeMessageDirectlyResultRequestHeader, GetConsumerRunningInfoRequestHeader, GetConsumerStatusRequestHeader,
};
use rocketmq_sync::protocol::{RemotingCommand, RequestCode, ResponseCode};

fn cluster() -> EmbeddedCluster {
    EmbeddedCluster::builder().topic("T", 4).start().unwrap()
}

#[test]
fn the_running_info_of_a_client_comes_back_as_it_is() {
    let cluster = cluster();
    let member = Peer::answering(address(&cluster), |request| {
        (request.request_code() == RequestCode::GET_CONSUMER_RUNNING_INFO).then(|| {
            assert_eq!(request.ext_fields.get("clientId"), Some("c1"));
            RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(Bytes::from_static(b"{\"jstack\":\"x\"}"))
        })
    });
    member.heartbeat("c1", "G", &["T"]);
    let admin = peer(&cluster);
    let ask = |client_id| {
        let header = GetConsumerRunningInfoRequestHeader { consumer_group: "G", client_id, jstack_enable: false };
        admin.call(RequestCode::GET_CONSUMER_RUNNING_INFO, &header)
    };
    assert_eq!(&ask("c1").body[..], b"{\"jstack\":\"x\"}");
    expect_code(&ask("c2"), ResponseCode::SYSTEM_ERROR);
}

#[test]
fn a_message_is_consumed_on_demand_by_the_client_that_is_named() {
    let cluster = cluster();
    let member = Peer::answering(address(&cluster), |request| {
        (request.request_code() == RequestCode::CONSUME_MESSAGE_DIRECTLY).then(|| {
            let message = decode_one(request.body.clone(), &DecodeOptions::default()).unwrap();
            let seen = format!("{} from {}", message.queue_offset(), request.ext_fields.get("brokerName").unwrap());
            RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(seen.into())
        })
    });
    member.heartbeat("c1", "G", &["T"]);
    let admin = peer(&cluster);
    let (msg_id, _) = admin.send("T", 0, "x", &[]);
    let ask = |msg_id| {
        let header = ConsumeMessageDirectlyResultRequestHeader {
            consumer_group: "G",
            client_id: Some("c1"),
            msg_id: Some(msg_id),
            broker_name: None,
            topic: None,
            topic_sys_flag: None,
            group_sys_flag: None,
        };
        admin.call(RequestCode::CONSUME_MESSAGE_DIRECTLY, &header)
    };
    assert_eq!(&ask(&msg_id).body[..], b"0 from broker-a");
    expect_code(&ask("rubbish"), ResponseCode::SYSTEM_ERROR);
}

#[test]
fn the_status_of_all_members_is_gathered() {
    let cluster = cluster();
    let member = |id: &'static str, offset| {
        let member = Peer::answering(address(&cluster), move |request| {
            (request.request_code() == RequestCode::GET_CONSUMER_STATUS_FROM_CLIENT).then(|| {
                let mut status = GetConsumerStatusBody::default();
                status.message_queue_table.insert(MessageQueue::new("T", "broker-a", 0), offset);
                RemotingCommand::response(ResponseCode::SUCCESS, None).with_body(status.encode())
            })
        });
        member.heartbeat(id, "G", &["T"]);
        member
    };
    let _members = [member("c1", 5), member("c2", 7)];
    let admin = peer(&cluster);
    let ask = |group, client_addr| {
        let header = GetConsumerStatusRequestHeader { topic: "T", group, client_addr };
        admin.call(RequestCode::INVOKE_BROKER_TO_GET_CONSUMER_STATUS, &header)
    };
    let all = GetConsumerStatusBody::decode(&ask("G", None).body).unwrap().consumer_table;
    let offsets: Vec<_> = all.iter().map(|(id, table)| (&**id, table.values().next().copied())).collect();
    assert_eq!(offsets, [("c1", Some(5)), ("c2", Some(7))]);
    let one = GetConsumerStatusBody::decode(&ask("G", Some("c2")).body).unwrap().consumer_table;
    assert_eq!(one.into_keys().collect::<Vec<_>>(), ["c2"]);
    expect_code(&ask("nobody", None), ResponseCode::SYSTEM_ERROR);
}
