//! The broadcasting model: each member has everything, and its offsets in a file.

use crate::support::*;
use rocketmq_sync::{
    ConsumeConcurrentlyStatus, ConsumerEvent, EmbeddedCluster, ErrorKind, MessageModel, PushConsumer,
    PushConsumerBuilder,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rocketmq-sync-broadcast-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, consumer: &PushConsumer, name: &str) -> PathBuf {
        self.0.join(consumer.client_id()).join(consumer.group()).join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn member(cluster: &EmbeddedCluster, folder: &Folder, name: &str) -> PushConsumerBuilder {
    builder(cluster, "g", "orders")
        .message_model(MessageModel::Broadcasting)
        .offset_store_dir(&folder.0)
        // Client ids are the process's, and tests run side by side.
        .instance_name(format!("{name}-{}", folder.0.display()).replace('/', "-"))
        .persist_interval(Duration::from_millis(20))
}

#[test]
fn each_member_sees_everything_and_goes_on_where_it_stopped() {
    let (cluster, folder) = (cluster("orders", 4), Folder::new());
    let (first_listener, first_seen) = recording(accept);
    let (second_listener, second_seen) = recording(accept);
    let first = member(&cluster, &folder, "one").listener(first_listener).start().unwrap();
    let second = member(&cluster, &folder, "two").listener(second_listener).start().unwrap();
    send(&cluster, "orders", 0..40);
    for (seen, consumer) in [(&first_seen, &first), (&second_seen, &second)] {
        let all = receive_until(seen, "40 messages", |all| all.len() >= 40);
        assert!(counts(&all).len() == 40, "each once: {:?}", counts(&all));
        assert_eq!(consumer.assignment().len(), 4, "all queues and no retry topic");
        assert!(consumer.health().is_good(), "{:?}", consumer.health());
    }
    let report = first.shutdown(LONG);
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.committed().values().sum::<i64>(), 40);
    let text = fs::read_to_string(folder.file(&first, "offsets.json")).unwrap();
    assert!(text.starts_with(r#"{"offsetTable":{{"brokerName":"#), "Java's form: {text}");
    send(&cluster, "orders", 40..60);
    // The handle of the first one is still there, but it has stopped.
    let (listener, seen) = recording(accept);
    let again = member(&cluster, &folder, "one").listener(listener).start().unwrap();
    assert_eq!(again.client_id(), first.client_id());
    let all = receive_until(&seen, "what came meanwhile", |all| all.len() >= 20);
    assert!(all.iter().all(|one| one.body.parse::<usize>().unwrap() >= 40), "{:?}", counts(&all));
    assert_eq!(receive_until(&second_seen, "the other one went on", |all| all.len() == 20).len(), 20);
}

#[test]
fn a_failed_message_comes_again_here_and_is_told_when_it_is_passed_over() {
    let (cluster, folder) = (cluster("orders", 1), Folder::new());
    let (sender, events) = channel();
    let (listener, seen) = recording(|message| match message.body() {
        b"1" => ConsumeConcurrentlyStatus::ReconsumeLater,
        _ => ConsumeConcurrentlyStatus::ConsumeSuccess,
    });
    let builder = member(&cluster, &folder, "one").max_reconsume_times(Some(1)).listener(listener);
    let builder = builder.event_listener(move |event| {
        let _ = sender.send(event.clone());
    });
    let consumer = builder.start().unwrap();
    send(&cluster, "orders", 0..3);
    receive_until(&seen, "each once", |all| all.len() == 3);
    assert!(consumer.assignment()[0].commit_offset().is_none_or(|offset| offset <= 1), "the offset waits for it");
    let again = receive_until(&seen, "it comes again", |all| all.len() == 1);
    assert_eq!((&*again[0].body, again[0].reconsume_times), ("1", 1));
    let event = events.recv_timeout(LONG).unwrap();
    assert!(matches!(event, ConsumerEvent::MessageDropped { offset: 1, deliveries: 2, .. }), "{event}");
    wait_until("the offset passes it", || consumer.assignment()[0].committed_offset() == Some(3));
}

#[test]
fn without_a_name_the_next_run_finds_the_file_and_a_second_member_is_refused() {
    let (cluster, folder) = (cluster("orders", 1), Folder::new());
    let unnamed = || {
        let builder = builder(&cluster, "g", "orders").message_model(MessageModel::Broadcasting);
        builder.offset_store_dir(&folder.0).client_ip("10.0.0.7")
    };
    let (listener, seen) = recording(accept);
    let first = unnamed().listener(listener).start().unwrap();
    assert_eq!(first.client_id(), "10.0.0.7@DEFAULT", "as Java has it");
    send(&cluster, "orders", 0..5);
    receive_until(&seen, "all", |all| all.len() == 5);
    // In this process the client id is refused, before the file is looked at.
    let (listener, _) = recording(accept);
    let same_here = unnamed().listener(listener).start().unwrap_err();
    assert_eq!(same_here.kind(), ErrorKind::State);
    drop(first);
    let (listener, seen) = recording(accept);
    let _again = unnamed().listener(listener).start().unwrap();
    send(&cluster, "orders", 5..6);
    let all = receive_until(&seen, "the new one", |all| !all.is_empty());
    assert_eq!(all[0].body, "5");
}

fn damaged(path: &Path) {
    fs::write(path, b"{\"offsetTable\":{{\"brokerNa").unwrap();
}

#[test]
fn a_damaged_file_is_told_and_its_predecessor_counts() {
    let (cluster, folder) = (cluster("orders", 1), Folder::new());
    send(&cluster, "orders", 0..5);
    let (listener, seen) = recording(accept);
    let first = member(&cluster, &folder, "one").listener(listener).start().unwrap();
    receive_until(&seen, "all", |all| all.len() == 5);
    wait_until("it is stored", || first.assignment()[0].committed_offset() == Some(5));
    send(&cluster, "orders", 5..6);
    first.shutdown(LONG);
    damaged(&folder.file(&first, "offsets.json"));
    let (sender, events) = channel();
    let (listener, seen) = recording(accept);
    let builder = member(&cluster, &folder, "one").listener(listener).event_listener(move |event| {
        let _ = sender.send(event.clone());
    });
    let again = builder.start().unwrap();
    let event = events.recv_timeout(LONG).unwrap();
    assert_eq!(event.kind(), "offset_file_damaged", "{event}");
    send(&cluster, "orders", 6..7);
    let all = receive_until(&seen, "what the predecessor does not know", |all| counts(all).contains_key("6"));
    assert!(all.len() <= 7, "{:?}", counts(&all));
    assert!(folder.file(&again, "offsets.json.damaged").exists());
}

#[test]
fn a_file_that_cannot_be_written_is_a_problem_while_it_lasts() {
    let (cluster, folder) = (cluster("orders", 1), Folder::new());
    let (listener, seen) = recording(accept);
    let consumer = member(&cluster, &folder, "one").listener(listener).start().unwrap();
    // A folder in its place cannot be written to, whoever runs this.
    let in_the_way = folder.file(&consumer, "offsets.json.tmp");
    wait_until("the start is stored", || folder.file(&consumer, "offsets.json").exists());
    fs::create_dir(&in_the_way).unwrap();
    send(&cluster, "orders", 0..5);
    receive_until(&seen, "consumption goes on", |all| all.len() == 5);
    wait_until("it is told", || consumer.health().problems().iter().any(|one| one.kind() == "offset_file_unwritable"));
    fs::remove_dir(&in_the_way).unwrap();
    wait_until("it is over", || consumer.health().is_good());
    wait_until("it is stored", || consumer.assignment()[0].committed_offset() == Some(5));
}

#[test]
fn five_groups_of_one_process_keep_five_files() {
    let (cluster, folder) = (cluster("orders", 3), Folder::new());
    send(&cluster, "orders", 0..30);
    let started = (0..5).map(|number| {
        let (listener, seen) = recording(accept);
        let builder = builder(&cluster, &format!("g{number}"), "orders").message_model(MessageModel::Broadcasting);
        let builder =
            builder.offset_store_dir(&folder.0).instance_name("same").persist_interval(Duration::from_millis(10));
        (builder.listener(listener).start().unwrap(), seen)
    });
    for (consumer, seen) in started.collect::<Vec<_>>() {
        receive_until(&seen, "all", |all| all.len() == 30);
        assert!(consumer.shutdown(LONG).is_clean());
        let text = fs::read_to_string(folder.file(&consumer, "offsets.json")).unwrap();
        assert_eq!(text.matches(":10").count(), 3, "{text}");
    }
}
