//! What consumption costs, from pull answer to offset: messages per second, CPU time, allocations and wake-ups for each
//! message, and the memory at the peak, for concurrent listeners with batches of 1 and 32, for order by queue and by key.
//!
//! `cargo bench --bench consume [MESSAGES]`; 1,000,000 by default. The embedded cluster runs in this process, so its share
//! is in the figures: CPU time and allocations are those of both sides. To keep memory flat the topic holds a part of the
//! messages and is read as often as needed, each time by a new group; starts and stops are not in the figures.

use rocketmq_sync::{
    ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, ConsumeOrderlyContext,
    ConsumeOrderlyStatus, EmbeddedCluster, Message, MessageExt, Producer, PushConsumer, PushConsumerBuilder,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts allocations, by thread-independent totals: one relaxed addition each.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

#[allow(unsafe_code)] // a global allocator cannot be written without; the library has none
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const QUEUES: u32 = 8;
const LONG: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug)]
enum Mode {
    Concurrent(usize),
    Ordered,
    ByKey,
}

fn main() {
    // `cargo test` runs benches as well, with `--test`: then a few messages show that they work.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let messages =
        std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(if is_test { 512 } else { 1_000_000 });
    println!(
        "{:<26} {:>11} {:>9} {:>9} {:>11} {:>9} {:>9}",
        "", "messages/s", "CPU ns", "allocs", "alloc bytes", "wake-ups", "peak MiB"
    );
    for size in [128, 1024, 16 * 1024] {
        // At most 64 MiB of bodies in the cluster at a time.
        let kept = messages.min((64 << 20) / size).max(1);
        let cluster = EmbeddedCluster::builder()
            .topic("bench", QUEUES)
            .max_messages(kept + 1024)
            .max_bytes(1 << 30)
            .start()
            .expect("a cluster");
        fill(&cluster, kept, size);
        for mode in [Mode::Concurrent(1), Mode::Concurrent(32), Mode::Ordered, Mode::ByKey] {
            measure(&cluster, mode, size, kept, messages.div_ceil(kept));
        }
    }
}

fn fill(cluster: &EmbeddedCluster, count: usize, size: usize) {
    let producer = Producer::builder("bench").name_servers(cluster.name_servers()).start().expect("a producer");
    let body = bytes::Bytes::from(vec![b'x'; size]);
    let message =
        |number: usize| Message::new("bench", body.clone()).with_property("__SHARDINGKEY", (number % 1000).to_string());
    let in_batch = (64 * 1024 / size).clamp(1, 256);
    let mut number = 0;
    while number < count {
        let end = (number + in_batch).min(count);
        let batch: Vec<_> = (number..end).map(message).collect();
        producer.send_batch(&batch).expect("sent");
        number = end;
    }
}

/// What this process has used so far.
struct Used {
    at: Instant,
    cpu_ns: u64,
    wake_ups: u64,
    allocations: u64,
    allocated: u64,
}

impl Used {
    fn now() -> Self {
        let tasks = || std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let first = |text: &str| text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        // The time on the processor, in nanoseconds.
        let cpu_ns = tasks().filter_map(|task| first(&read(task.path().join("schedstat")))).sum();
        let switches = |text: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            line.trim().parse::<u64>().ok()
        };
        let wake_ups = tasks().filter_map(|task| switches(&read(task.path().join("status")))).sum();
        Self {
            at: Instant::now(),
            cpu_ns,
            wake_ups,
            allocations: ALLOCATIONS.load(Ordering::Relaxed),
            allocated: ALLOCATED.load(Ordering::Relaxed),
        }
    }
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1024
}

/// Counts what the listener sees; the first call opens the measurement.
#[derive(Default)]
struct Seen {
    messages: AtomicUsize,
    is_open: AtomicBool,
}

impl Seen {
    fn note(&self, messages: &[MessageExt]) {
        // Until every queue is held, so that the start is not measured.
        while !self.is_open.load(Ordering::Acquire) {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        std::hint::black_box(messages.iter().map(|message| message.body().len()).sum::<usize>());
        self.messages.fetch_add(messages.len(), Ordering::Relaxed);
    }
}

fn consumer(cluster: &EmbeddedCluster, mode: Mode, group: String, seen: &Arc<Seen>) -> PushConsumer {
    let builder = PushConsumer::builder(group)
        .name_servers(cluster.name_servers())
        .subscribe("bench", "*")
        .consume_from(ConsumeFromWhere::FirstOffset);
    let seen = seen.clone();
    let ordered = |builder: PushConsumerBuilder| {
        let seen = seen.clone();
        builder.consume_batch_size(32).listener_orderly(
            move |messages: &[MessageExt], _: &mut ConsumeOrderlyContext| {
                seen.note(messages);
                ConsumeOrderlyStatus::Success
            },
        )
    };
    let builder = match mode {
        Mode::Ordered => ordered(builder),
        Mode::ByKey => ordered(builder).order_by_key(true),
        Mode::Concurrent(batch) => builder.consume_batch_size(batch).listener({
            let seen = seen.clone();
            move |messages: &[MessageExt], _: &mut ConsumeConcurrentlyContext| {
                seen.note(messages);
                ConsumeConcurrentlyStatus::ConsumeSuccess
            }
        }),
    };
    builder.start().expect("a consumer")
}

/// Consumes the topic `times` over.
fn measure(cluster: &EmbeddedCluster, mode: Mode, size: usize, kept: usize, times: usize) {
    let (mut took, mut cpu, mut wake_ups, mut allocations, mut allocated) = (Duration::ZERO, 0, 0, 0, 0);
    for round in 0..times {
        let seen = Arc::new(Seen::default());
        let consumer = consumer(cluster, mode, format!("bench-{mode:?}-{round}").replace(['(', ')'], "-"), &seen);
        let limit = Instant::now() + LONG;
        let wait = |what: &str, done: &dyn Fn() -> bool| {
            while !done() {
                assert!(Instant::now() < limit, "not within {LONG:?}: {what}");
                std::thread::park_timeout(Duration::from_millis(1));
            }
        };
        let held = || consumer.assignment().iter().filter(|state| state.queue().topic() == "bench").count();
        wait("all queues", &|| held() == QUEUES as usize);
        let before = Used::now();
        seen.is_open.store(true, Ordering::Release);
        wait("all messages", &|| seen.messages.load(Ordering::Relaxed) >= kept);
        let committed = || {
            let states = consumer.assignment();
            let of_topic = states.iter().filter(|state| state.queue().topic() == "bench");
            of_topic.filter_map(|state| state.commit_offset()).sum::<i64>()
        };
        wait("the offsets", &|| committed() == kept as i64);
        let after = Used::now();
        took += after.at - before.at;
        cpu += after.cpu_ns.saturating_sub(before.cpu_ns);
        wake_ups += after.wake_ups.saturating_sub(before.wake_ups);
        allocations += after.allocations - before.allocations;
        allocated += after.allocated - before.allocated;
        consumer.shutdown(Duration::from_secs(10));
    }
    let count = (kept * times) as f64;
    println!(
        "{:<26} {:>11.0} {:>9.0} {:>9.2} {:>11.0} {:>9.3} {:>9}",
        format!("{mode:?}, {size} B"),
        count / took.as_secs_f64(),
        cpu as f64 / count,
        allocations as f64 / count,
        allocated as f64 / count,
        wake_ups as f64 / count,
        peak_mib()
    );
}
