//! A master that goes away while its slave is there.

use crate::support::*;
use rocketmq_sync::EmbeddedCluster;

#[test]
fn a_consumer_reads_on_from_the_slave_and_goes_back_to_the_master() {
    let cluster = EmbeddedCluster::builder().topic("orders", 2).slaves(1).start().unwrap();
    let (listener, seen) = recording(accept);
    let consumer = builder(&cluster, "g", "orders").listener(listener).start().unwrap();
    send(&cluster, "orders", 0..10);
    receive_until(&seen, "all from the master", |all| counts(all).len() == 10);
    consumer.suspend();
    send(&cluster, "orders", 10..60);
    cluster.stop_broker("broker-a").unwrap();
    consumer.resume();
    let wanted = |from: usize, to: usize| {
        move |all: &[Seen]| (from..to).all(|number| counts(all).contains_key(&*number.to_string()))
    };
    receive_until(&seen, "what the slave has", wanted(10, 60));
    cluster.restart_broker("broker-a").unwrap();
    send(&cluster, "orders", 60..70);
    receive_until(&seen, "what the master got later", wanted(60, 70));
}
