//! The shortest useful consumer: joins a group on any cluster and prints what it gets, until Ctrl-C.
//!
//! ```text
//! cargo run --example push_consumer -- 127.0.0.1:9876 orders
//! ```

mod common;

use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, MessageExt, PushConsumer,
};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let mut args = std::env::args().skip(1);
    let name_servers = args.next().unwrap_or_else(|| "127.0.0.1:9876".into());
    let topic = args.next().unwrap_or_else(|| "orders".into());

    let stop = common::stop_signals()?;
    let consumer = PushConsumer::builder("push-consumer-example")
        .name_servers(name_servers)
        .subscribe(topic.as_str(), "*")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .listener(|messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            for message in messages {
                let body = String::from_utf8_lossy(message.body());
                println!("{}@{}: {body}", message.message_queue(), message.queue_offset());
            }
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()?;
    eprintln!("consuming {topic} as {}; Ctrl-C stops", consumer.client_id());

    stop.recv()?;
    let report = consumer.shutdown(Duration::from_secs(10));
    eprintln!("consumed {}, left {} to be delivered again", report.consumed(), report.uncommitted());
    Ok(())
}
