//! Messages at a steady rate, while something else goes on.

use super::Target;
use super::produce::producer;
use crossbeam::channel::{Sender, bounded, select, tick};
use rocketmq_sync::Message;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that sends a message at each tick, until it is stopped.
pub struct Load {
    /// The unique keys of the messages that the broker has confirmed.
    sent: Arc<Mutex<Vec<String>>>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Load {
    pub fn start(target: &dyn Target, topic: &str, every: Duration) -> Self {
        let producer = producer(target);
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = bounded(1);
        let (list, topic) = (Arc::clone(&sent), topic.to_owned());
        let thread = thread::spawn(move || {
            let ticks = tick(every);
            for seq in 0.. {
                select! {
                    recv(stopped) -> _ => return,
                    recv(ticks) -> _ => {}
                }
                let message = Message::new(&*topic, format!("{seq} under load"));
                let result = producer.send(&message).unwrap_or_else(|error| panic!("message {seq}: {error}"));
                list.lock().expect("nobody panics with the list").push(result.msg_id().to_owned());
            }
        });
        Self { sent, stop, thread }
    }

    /// What was sent beyond the first `from` messages.
    pub fn sent_from(&self, from: usize) -> Vec<String> {
        self.sent.lock().expect("nobody panics with the list")[from..].to_vec()
    }

    pub fn stop(self) -> Vec<String> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| panic!("the producer failed, see above"));
        std::mem::take(&mut self.sent.lock().expect("nobody panics with the list"))
    }
}
