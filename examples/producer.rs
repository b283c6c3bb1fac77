//! The shortest useful producer: sends a few messages to a topic of any cluster.
//!
//! ```text
//! cargo run --example producer -- 127.0.0.1:9876 orders
//! ```

use rocketmq_sync::{Message, Producer, Result};
use std::time::Duration;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let name_servers = args.next().unwrap_or_else(|| "127.0.0.1:9876".into());
    let topic = args.next().unwrap_or_else(|| "orders".into());

    let producer = Producer::builder("producer-example").name_servers(name_servers).start()?;
    for number in 0..10 {
        let message =
            Message::new(topic.as_str(), format!("order {number}")).with_tags("new").with_key(number.to_string());
        let result = producer.send(&message)?;
        println!("{number}: {:?} at {}, offset {}", result.status(), result.message_queue(), result.queue_offset());
    }
    producer.shutdown(Duration::from_secs(5));
    Ok(())
}
