//! A consumer that asks for messages itself: reads assigned queues from their start, then from the middle once more, and
//! commits.
//!
//! ```text
//! cargo run --example lite_pull
//! cargo run --example lite_pull -- 127.0.0.1:9876 orders
//! ```
//!
//! Without arguments it starts the embedded cluster and sends it some messages. It ends when there is nothing left to read.

use rocketmq_sync::{ConsumeFromWhere, EmbeddedCluster, LitePullConsumer, Message, Producer};
use std::error::Error;
use std::time::Duration;

/// A queue that gives nothing for so long is read to its end.
const PATIENCE: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn Error>> {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    let mut args = std::env::args().skip(1);
    let given = args.next();
    let topic = args.next().unwrap_or_else(|| "orders".into());
    let embedded = if given.is_none() { Some(filled(&topic)?) } else { None };
    let name_servers = given.or(embedded.as_ref().map(|cluster| cluster.name_servers())).unwrap_or_default();

    let consumer = LitePullConsumer::builder("lite-pull-example")
        .name_servers(name_servers)
        .consume_from(ConsumeFromWhere::FirstOffset)
        .auto_commit(false)
        .start()?;
    let queues = consumer.fetch_message_queues(&topic)?;
    consumer.assign(queues.clone())?;
    println!("read {} messages of {} queues", read(&consumer)?, queues.len());
    consumer.commit()?;

    for queue in &queues {
        let end = consumer.position(queue)?.unwrap_or_default();
        consumer.seek(queue, end - end.min(2))?;
    }
    println!("read the last {} once more", read(&consumer)?);
    for queue in &queues {
        println!("{queue}: committed {}", consumer.committed(queue)?.unwrap_or_default());
    }
    consumer.commit()?;
    let report = consumer.shutdown(Duration::from_secs(10));
    if report.is_clean() { Ok(()) } else { Err(format!("the stop left something behind: {report:?}").into()) }
}

fn read(consumer: &LitePullConsumer) -> rocketmq_sync::Result<usize> {
    let mut count = 0;
    loop {
        let messages = consumer.poll(PATIENCE)?;
        if messages.is_empty() {
            return Ok(count);
        }
        count += messages.len();
    }
}

fn filled(topic: &str) -> rocketmq_sync::Result<EmbeddedCluster> {
    let cluster = EmbeddedCluster::builder().topic(topic, 2).start()?;
    let producer = Producer::builder("lite-pull-example-producer").name_servers(cluster.name_servers()).start()?;
    for number in 0..20 {
        producer.send(&Message::new(topic, format!("order {number}")))?;
    }
    Ok(cluster)
}
