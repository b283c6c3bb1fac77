//! `mqcat produce`: sends messages and says where each one went.

use crate::common::stop_signals;
use crate::events::{Done, Failed, Sent};
use crate::failure::Failure;
use crate::output::Output;
use crate::produce_options::{self, Body, ProduceOptions, Target};
use crossbeam::channel::{Receiver, bounded, select};
use rocketmq_sync::{Message, MessageQueue, Producer, Result, SelectByHash, SendResult, SendStatus};
use std::io::{self, BufRead};
use std::thread;
use std::time::{Duration, Instant};

pub fn run(parser: &mut lexopt::Parser) -> std::result::Result<(), Failure> {
    let Some(options) = produce_options::parse(parser)? else {
        print!("{}", produce_options::HELP);
        return Ok(());
    };
    let stop = stop_signals().map_err(|error| Failure::Failed(format!("signals: {error}")))?;
    let producer = Producer::builder("mqcat")
        .name_servers(options.name_servers.as_str())
        .topic(options.topic.as_str())
        .start()
        .map_err(|error| Failure::refused(error, []))?;
    let mut run = Run { options: &options, producer: &producer, sent: 0, failed: 0 };
    let outcome = run.send_all(&stop);
    let done = Done { event: "done", sent: run.sent, failed: run.failed };
    producer.shutdown(Duration::from_secs(5));
    outcome?;
    if let Output::Json = options.output {
        write(options.output, &done, |_| None)?;
    }
    eprintln!("mqcat produce: sent {}, failed {}", done.sent, done.failed);
    match done.failed {
        0 => Ok(()),
        failed => Err(Failure::Failed(format!("{failed} of {} messages failed", failed + done.sent))),
    }
}

struct Run<'a> {
    options: &'a ProduceOptions,
    producer: &'a Producer,
    sent: u64,
    failed: u64,
}

impl Run<'_> {
    fn send_all(&mut self, stop: &Receiver<i32>) -> std::result::Result<(), Failure> {
        let mut bodies = Bodies::new(&self.options.body)?;
        let started = Instant::now();
        let mut seq = 0;
        while seq < self.options.count {
            let room = self.options.count - seq;
            let wanted = usize::try_from(room).map_or(self.options.batch, |room| room.min(self.options.batch));
            let mut batch = Vec::new();
            let mut ended = false;
            while batch.len() < wanted && !ended {
                match bodies.next(seq + batch.len() as u64, stop)? {
                    Some(body) => batch.push(body),
                    None => ended = true,
                }
            }
            let first = seq;
            seq += batch.len() as u64;
            if !batch.is_empty() {
                self.send(first, batch)?;
            }
            if ended || self.paced_stop(started, seq, stop) {
                break;
            }
        }
        Ok(())
    }

    /// Waits until message `seq` is due. Whether to stop instead.
    fn paced_stop(&self, started: Instant, seq: u64, stop: &Receiver<i32>) -> bool {
        let due = match self.options.rate {
            Some(rate) if seq < self.options.count => Duration::from_secs_f64(seq as f64 / rate),
            _ => Duration::ZERO,
        };
        stop.recv_timeout(due.saturating_sub(started.elapsed())).is_ok()
    }

    fn send(&mut self, first: u64, bodies: Vec<Vec<u8>>) -> std::result::Result<(), Failure> {
        let count = bodies.len() as u64;
        let messages: Vec<_> = (first..).zip(bodies).map(|(seq, body)| self.message(seq, body)).collect();
        let result = match messages.as_slice() {
            [message] if self.options.oneway => self.producer.send_oneway(message).map(|()| None),
            [message] => self.send_one(first, message).map(Some),
            several => self.producer.send_batch(several).map(Some),
        };
        match result {
            Ok(result) => {
                self.sent += count;
                self.report_sent(first, count, result.as_ref())
            }
            Err(error) => {
                self.failed += count;
                let error = error.to_string();
                for seq in first..first + count {
                    let event = Failed { event: "failed", seq, error: &error };
                    write(self.options.output, &event, |_| None)?;
                    if let Output::Text = self.options.output {
                        eprintln!("mqcat produce: message {seq} failed: {error}");
                    }
                }
                Ok(())
            }
        }
    }

    fn send_one(&self, seq: u64, message: &Message) -> Result<SendResult> {
        match &self.options.target {
            Target::Any => self.producer.send(message),
            Target::Queue(id) => self
                .producer
                .send_with_selector(message, |queues: &[MessageQueue], _: &Message| pick_by_id(queues, *id, seq)),
            Target::ShardingKey(pattern) => {
                self.producer.send_with_selector(message, SelectByHash(&fill(pattern, seq)))
            }
        }
    }

    fn message(&self, seq: u64, body: Vec<u8>) -> Message {
        let mut message = Message::new(self.options.topic.as_str(), body);
        if let Some(tags) = &self.options.tags {
            message = message.with_tags(tags);
        }
        if let Some(pattern) = &self.options.keys {
            message = message.with_key(fill(pattern, seq));
        }
        if let Some(level) = self.options.delay_level {
            message = message.with_delay_level(level);
        }
        for (key, value) in &self.options.properties {
            message = message.with_property(key, value);
        }
        message
    }

    fn report_sent(&self, first: u64, count: u64, result: Option<&SendResult>) -> std::result::Result<(), Failure> {
        // The ids of a batch come as one text each, with a comma between them.
        let ids = |text: Option<&str>| text.map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>());
        let msg_ids = ids(result.map(SendResult::msg_id));
        let offset_msg_ids = ids(result.map(SendResult::offset_msg_id));
        let queue = result.map(SendResult::message_queue);
        for index in 0..count {
            let at = |ids: &Option<Vec<String>>| ids.as_ref().and_then(|ids| ids.get(index as usize).cloned());
            let event = Sent {
                event: "sent",
                seq: first + index,
                status: result.map_or("ONEWAY", |result| status_name(result.status())),
                broker: queue.map(MessageQueue::broker_name),
                queue: queue.map(MessageQueue::queue_id),
                offset: result.map(|result| result.queue_offset() + index as i64),
                msg_id: at(&msg_ids),
                offset_msg_id: at(&offset_msg_ids),
            };
            write(self.options.output, &event, |event| Some(sent_line(event, &self.options.topic)))?;
        }
        Ok(())
    }
}

/// Where the bodies come from.
enum Bodies<'a> {
    Numbered(usize),
    Text(&'a str),
    Lines(Receiver<io::Result<Vec<u8>>>),
}

impl<'a> Bodies<'a> {
    fn new(body: &'a Body) -> std::result::Result<Self, Failure> {
        Ok(match body {
            Body::Numbered(size) => Self::Numbered(*size),
            Body::Text(text) => Self::Text(text),
            Body::Stdin => Self::Lines(read_lines().map_err(|error| Failure::Failed(format!("stdin: {error}")))?),
        })
    }

    /// The body of message `seq`; `None` at the end of the input or after a signal.
    fn next(&mut self, seq: u64, stop: &Receiver<i32>) -> std::result::Result<Option<Vec<u8>>, Failure> {
        match self {
            Self::Numbered(size) => Ok(Some(numbered_body(seq, *size))),
            Self::Text(text) => Ok(Some(text.as_bytes().to_vec())),
            Self::Lines(lines) => select! {
                recv(lines) -> line => line.ok().transpose().map_err(|error| Failure::Failed(format!("stdin: {error}"))),
                recv(stop) -> _ => Ok(None),
            },
        }
    }
}

/// Reads standard input on a thread of its own, since a read cannot be interrupted by a signal's channel.
fn read_lines() -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (lines, receiver) = bounded(64);
    thread::Builder::new().name("stdin".into()).spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            if lines.send(line).is_err() {
                break;
            }
        }
    })?;
    Ok(receiver)
}

/// The sequence number, a space, and filler up to `size` bytes; the number stays whole when `size` is smaller.
fn numbered_body(seq: u64, size: usize) -> Vec<u8> {
    let mut body = seq.to_string().into_bytes();
    if body.len() < size {
        body.push(b' ');
        let filler = (b'a'..=b'z').cycle().take(size - body.len());
        body.extend(filler);
    }
    body
}

fn fill(pattern: &str, seq: u64) -> String {
    pattern.replace("{}", &seq.to_string())
}

/// One of the queues with this number, of each broker in turn.
fn pick_by_id(queues: &[MessageQueue], id: i32, seq: u64) -> Option<usize> {
    let having: Vec<usize> = (0..queues.len()).filter(|&index| queues[index].queue_id() == id).collect();
    let turn = usize::try_from(seq).unwrap_or_default().checked_rem(having.len())?;
    Some(having[turn])
}

fn status_name(status: SendStatus) -> &'static str {
    match status {
        SendStatus::SendOk => "SEND_OK",
        SendStatus::FlushDiskTimeout => "FLUSH_DISK_TIMEOUT",
        SendStatus::FlushSlaveTimeout => "FLUSH_SLAVE_TIMEOUT",
        SendStatus::SlaveNotAvailable => "SLAVE_NOT_AVAILABLE",
    }
}

fn sent_line(event: &Sent<'_>, topic: &str) -> String {
    match (event.broker, event.queue, event.offset) {
        (Some(broker), Some(queue), Some(offset)) => {
            let id = event.msg_id.as_deref().unwrap_or("-");
            format!("{} {} {topic}/{broker}/{queue}@{offset} {id}", event.seq, event.status)
        }
        _ => format!("{} {} {topic}", event.seq, event.status),
    }
}

fn write<E: serde::Serialize>(
    output: Output,
    event: &E,
    text: impl FnOnce(&E) -> Option<String>,
) -> std::result::Result<(), Failure> {
    output.write(event, text).map_err(|error| Failure::Failed(format!("standard output: {error}")))
}
