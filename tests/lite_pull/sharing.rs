//! Members that share the queues of a group.

use crate::support::*;
use rocketmq_sync::{LitePullConsumer, RebalanceEvent, RebalanceListener};
use std::collections::BTreeSet;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

#[test]
fn members_hand_over_without_loss() {
    let cluster = cluster("orders", 8);
    let first = subscribed(&cluster, "g");
    wait_until("one member has all", || held(&first).len() == 8);
    send(&cluster, 0..200);
    let mut seen = poll_count(&first, 50);
    let second = std::thread::scope(|scope| {
        let joining = scope.spawn(|| {
            let second = subscribed(&cluster, "g");
            wait_until("they share", || held(&second).len() == 4);
            second
        });
        // The first one goes on polling, so that its queues can go without delay.
        while !joining.is_finished() {
            seen.extend(first.poll(SHORT).unwrap().iter().map(number));
        }
        joining.join().unwrap()
    });
    send(&cluster, 200..400);
    wait_until("every message was seen", || {
        for member in [&first, &second] {
            seen.extend(member.poll(Duration::ZERO).unwrap().iter().map(number));
        }
        seen.iter().collect::<BTreeSet<_>>().len() == 400
    });
    assert!(second.shutdown(LONG).is_clean());
    send(&cluster, 400..440);
    let rest = poll_count(&first, 40);
    assert!(rest.iter().all(|number| *number >= 400), "{rest:?}");
}

struct Events(Sender<(&'static str, usize)>);

impl RebalanceListener for Events {
    fn assigned(&self, event: &RebalanceEvent) {
        let _ = self.0.send(("assigned", event.queues().len()));
    }
    fn revoked(&self, event: &RebalanceEvent) {
        let _ = self.0.send(("revoked", event.queues().len()));
    }
    fn lost(&self, event: &RebalanceEvent) {
        let _ = self.0.send(("lost", event.queues().len()));
    }
}

#[test]
fn queues_that_go_between_poll_and_commit_are_lost_and_their_messages_come_again_elsewhere() {
    let cluster = cluster("orders", 2);
    send(&cluster, 0..20);
    let (sender, events) = channel();
    let first = builder(&cluster, "g")
        .subscribe("orders", "*")
        .revoke_grace(Duration::from_millis(50))
        .rebalance_listener(Events(sender))
        .start()
        .unwrap();
    assert_eq!(events.recv_timeout(LONG).unwrap(), ("assigned", 2));
    poll_count(&first, 20); // the last batch is in hand, and with it one of the queues
    let in_hand = |member: &LitePullConsumer| member.polled() - member.consumed();
    assert_eq!(in_hand(&first), 10);
    let second = subscribed(&cluster, "g");
    wait_until("they share", || held(&first).len() == 1 && held(&second).len() == 1);
    // Whichever queue went: it was revoked if it was done, lost if it was in hand; then it comes again.
    let (kind, _) = events.recv_timeout(LONG).unwrap();
    match kind {
        "lost" => {
            assert_eq!(poll_count(&second, 10).len(), 10);
            first.commit().unwrap();
            let queue = held(&second)[0].clone();
            assert_eq!(
                second.committed(&queue).unwrap().unwrap_or(0),
                0,
                "a late commit moves no other member's offset"
            );
        }
        kind => {
            assert_eq!(kind, "revoked");
            let queue = held(&second)[0].clone();
            assert_eq!(first.committed(&queue).unwrap(), Some(10), "stored before it was told");
        }
    }
}

#[test]
fn a_queue_that_goes_waits_for_the_batch_in_hand() {
    let cluster = cluster("orders", 1);
    send(&cluster, 0..10);
    let (sender, events) = channel();
    let first = builder(&cluster, "g")
        .subscribe("orders", "*")
        .revoke_grace(LONG)
        .rebalance_listener(Events(sender))
        .start()
        .unwrap();
    events.recv_timeout(LONG).unwrap();
    poll_count(&first, 10);
    first.unsubscribe("orders");
    wait_until("it is being given up", || {
        first.assignment().iter().all(|state| state.phase() == rocketmq_sync::QueuePhase::Draining)
    });
    assert!(events.try_recv().is_err(), "not before the batch is handled");
    assert!(first.poll(Duration::ZERO).unwrap().is_empty());
    assert_eq!(events.recv_timeout(LONG).unwrap(), ("revoked", 1));
    assert_eq!(stored(&first), Some(10));
}

#[test]
fn assigned_queues_are_read_whatever_the_group_does_and_replaced_at_once() {
    let cluster = cluster("orders", 3);
    send(&cluster, 0..30);
    let consumer = builder(&cluster, "g").assign([queue(0), queue(1)]).start().unwrap();
    poll_count(&consumer, 20);
    consumer.assign([queue(1), queue(2)]).unwrap();
    assert_eq!(held(&consumer), [queue(1), queue(2)]);
    assert_eq!(poll_count(&consumer, 10).len(), 10);
    consumer.assign([]).unwrap();
    assert!(held(&consumer).is_empty());
    assert!(consumer.poll(SHORT).unwrap().is_empty());
}

#[test]
fn a_member_beside_push_consumers_shares_with_them() {
    use rocketmq_sync::{
        ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, MessageExt, PushConsumer,
    };
    let cluster = cluster("orders", 4);
    let lite = subscribed(&cluster, "g");
    let (sender, pushed) = channel();
    let push = PushConsumer::builder("g")
        .name_servers(cluster.name_servers())
        .subscribe("orders", "*")
        .consume_from(ConsumeFromWhere::FirstOffset)
        .listener(move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
            messages.iter().for_each(|message| sender.send(number(message)).unwrap());
            ConsumeConcurrentlyStatus::ConsumeSuccess
        })
        .start()
        .unwrap();
    wait_until("they share", || {
        let of_topic = push.assignment().iter().filter(|state| state.queue().topic() == "orders").count();
        held(&lite).len() == 2 && of_topic == 2
    });
    send(&cluster, 0..40);
    let mut all = BTreeSet::new();
    wait_until("every message was seen", || {
        all.extend(pushed.try_iter());
        all.extend(lite.poll(Duration::ZERO).unwrap().iter().map(number));
        all.len() == 40
    });
}

#[test]
fn members_of_a_broadcasting_group_read_all_and_keep_their_own_offsets() {
    let cluster = cluster("orders", 2);
    send(&cluster, 0..20);
    let dir = std::env::temp_dir().join(format!("rocketmq-sync-lite-{}", std::process::id()));
    let start = |name: &str| {
        builder(&cluster, "g")
            .message_model(rocketmq_sync::MessageModel::Broadcasting)
            .offset_store_dir(&dir)
            .instance_name(name)
            .subscribe("orders", "*")
            .start()
            .unwrap()
    };
    let members = [start("one"), start("two")];
    for member in &members {
        assert_eq!(poll_count(member, 20).len(), 20);
    }
    members[0].commit().unwrap();
    assert_eq!(members[0].committed(&queue(0)).unwrap(), Some(10));
    assert_eq!(members[1].committed(&queue(0)).unwrap(), None);
    drop(members);
    send(&cluster, 20..22);
    let mut again = poll_count(&start("one"), 2);
    again.sort_unstable();
    assert_eq!(again, [20, 21]);
    std::fs::remove_dir_all(dir).unwrap();
}

/// Assigns once more and stops, from within its call.
struct Meddler(Arc<OnceLock<LitePullConsumer>>, Sender<bool>);

impl RebalanceListener for Meddler {
    fn assigned(&self, event: &RebalanceEvent) {
        let Some(consumer) = self.0.get() else { return };
        if event.queues() == [queue(1)] {
            consumer.assign([queue(2)]).unwrap();
        } else {
            let _ = self.1.send(consumer.shutdown(LONG).is_clean());
        }
    }
}

#[test]
fn a_rebalance_listener_may_assign_and_stop() {
    let cluster = cluster("orders", 3);
    let consumer: Arc<OnceLock<LitePullConsumer>> = Arc::default();
    let (sender, stopped) = channel();
    let started = builder(&cluster, "g").rebalance_listener(Meddler(consumer.clone(), sender)).start().unwrap();
    consumer.set(started).unwrap();
    consumer.get().unwrap().assign([queue(1)]).unwrap();
    assert!(stopped.recv_timeout(LONG).unwrap());
}
