//! Messages in order: the steps of each order one after the other, different orders at once, on whichever member.
//!
//! ```text
//! cargo run --example orderly
//! cargo run --example orderly -- --namesrv 127.0.0.1:9876
//! ```
//!
//! Sends the steps of some orders, each with the order's number as sharding key; lets two members of a group consume them
//! by key, fails some steps on purpose and lets a member leave half-way; then shows that each order saw its steps in order.

use rocketmq_sync::{
    ConsumeFromWhere, ConsumeOrderlyContext, ConsumeOrderlyStatus, EmbeddedCluster, Message, MessageExt, Producer,
    PushConsumer, Result, SelectByHash,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const ORDERS: usize = 12;
const STEPS: [&str; 5] = ["placed", "paid", "packed", "shipped", "delivered"];
const PATIENCE: Duration = Duration::from_secs(120);

/// The steps that each order has been through.
type Book = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("error")).init();
    let mut args = std::env::args().skip(1);
    let (cluster, name_servers) = match (args.next().as_deref(), args.next()) {
        (None, _) => {
            let cluster = EmbeddedCluster::start()?;
            let name_servers = cluster.name_servers();
            (Some(cluster), name_servers)
        }
        (Some("--namesrv"), Some(address)) => (None, address),
        _ => return Err("usage: orderly [--namesrv ADDRESS]".into()),
    };
    // A real cluster keeps what earlier runs sent and stored.
    let run = std::process::id();
    let topic = format!("orderly-example-{run}");
    let producer = Producer::builder("orderly-example-producer").name_servers(&name_servers).start()?;
    if let Some(cluster) = &cluster {
        cluster.create_topic(&topic, 4)?;
    }
    for step in STEPS {
        for order in 0..ORDERS {
            let order = format!("order-{order}");
            let message = Message::new(topic.as_str(), step).with_property("__SHARDINGKEY", order.as_str());
            producer.send_with_selector(&message, SelectByHash(&order))?;
        }
    }
    let book = Book::default();
    let first = member(&name_servers, run, &topic, &book)?;
    let second = member(&name_servers, run, &topic, &book)?;
    wait_for(&book, ORDERS * STEPS.len() / 2)?;
    println!("half is done; one member leaves");
    first.shutdown(Duration::from_secs(10));
    wait_for(&book, ORDERS * STEPS.len())?;
    second.shutdown(Duration::from_secs(10));
    for (order, steps) in book.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("{order}: {}", steps.join(", "));
        if *steps != STEPS {
            return Err(format!("{order} is out of order").into());
        }
    }
    println!("Every order saw its steps in order.");
    Ok(())
}

fn member(name_servers: &str, run: u32, topic: &str, book: &Book) -> Result<PushConsumer> {
    let book = book.clone();
    PushConsumer::builder(format!("orderly-example-{run}"))
        .name_servers(name_servers)
        .subscribe(topic, "*")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .order_by_key(true)
        .listener_orderly(move |messages: &[MessageExt], context: &mut ConsumeOrderlyContext| {
            let message = &messages[0];
            let order = message.property("__SHARDINGKEY").unwrap_or_default().to_owned();
            let step = String::from_utf8_lossy(message.body()).into_owned();
            // Some payments fail at first. Nothing of that order goes on before; the others do.
            if step == "paid" && order.ends_with('3') && message.reconsume_times() == 0 {
                context.set_suspend(Duration::from_millis(100));
                return ConsumeOrderlyStatus::SuspendCurrentQueueAMoment;
            }
            let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
            let steps = book.entry(order).or_default();
            // At least once: a step may come again when its queue moves.
            if !steps.contains(&step) {
                steps.push(step);
            }
            ConsumeOrderlyStatus::Success
        })
        .start()
}

fn wait_for(book: &Book, steps: usize) -> std::result::Result<(), Box<dyn Error>> {
    let deadline = std::time::Instant::now() + PATIENCE;
    while book.lock().unwrap_or_else(PoisonError::into_inner).values().map(Vec::len).sum::<usize>() < steps {
        if std::time::Instant::now() > deadline {
            return Err("the messages did not come".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
