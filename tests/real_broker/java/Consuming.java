import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** A push consumer that tells what it gets and which queues it holds; the latter only its deprecated inner part knows. */
@SuppressWarnings("deprecation")
final class Consuming {
    private final DefaultMQPushConsumer consumer;
    /** Named in each event where the process has several members, else null. */
    private final String member;
    private final AtomicLong consumed = new AtomicLong();
    private final CountDownLatch stop = new CountDownLatch(1);
    private Set<String> held = new TreeSet<>();

    /** A client whose start failed blocks its instance name, so each attempt has its own. */
    Consuming(Options options, String member, int attempt) throws Exception {
        this.member = member;
        consumer = new DefaultMQPushConsumer(options.require("--group"));
        consumer.setNamesrvAddr(options.require("--namesrv"));
        for (String topic : options.all("--topic")) {
            int equals = topic.indexOf('=');
            consumer.subscribe(equals < 0 ? topic : topic.substring(0, equals), equals < 0 ? "*" : topic.substring(equals + 1));
        }
        boolean first = options.get("--from", "last").equals("first");
        consumer.setConsumeFromWhere(first ? ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET : ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        if (options.get("--model", "clustering").equals("broadcasting")) {
            // The type's package is another one in each major version.
            var model = consumer.getMessageModel();
            consumer.setMessageModel(Enum.valueOf(model.getDeclaringClass(), "BROADCASTING"));
            // Before the class of the offset store is loaded, which reads it once.
            String folder = options.setting("offset_store_dir");
            if (folder != null) {
                System.setProperty("rocketmq.client.localOffsetStoreDir", folder);
            }
        }
        consumer.setPollNameServerInterval(options.number("--route-ms", 30_000));
        consumer.setHeartbeatBrokerInterval(options.number("--heartbeat-ms", 30_000));
        consumer.setPersistConsumerOffsetInterval(options.number("--persist-ms", 5_000));
        consumer.setConsumeMessageBatchMaxSize(options.number("--batch", 1));
        int threads = options.number("--threads", 20);
        consumer.setConsumeThreadMin(threads);
        consumer.setConsumeThreadMax(threads);
        consumer.setMaxReconsumeTimes(options.number("--max-reconsume", 16));
        // On a busy machine a JVM takes longer to warm up than the usual 3 s.
        consumer.setMqClientApiTimeout(15_000);
        // What an orderly stop is worth is compared with ours, which waits for what its workers hold.
        consumer.setAwaitTerminationMillisWhenShutdown(10_000);
        String address = options.setting("client_ip");
        if (address != null) {
            consumer.setClientIP(address);
        }
        // Consumers of one process share everything, and may not be in one group, unless their instances have names.
        String instance = options.get("--instance", member == null ? null : member + "#" + ProcessHandle.current().pid() + "#" + attempt);
        if (instance != null) {
            consumer.setInstanceName(instance);
        }
        consumer.setAllocateMessageQueueStrategy(Allocating.strategy(options));
        if (options.get("--mode", "concurrent").equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) new Listener(options)::consumeInOrder);
        } else {
            consumer.registerMessageListener(options.has("--quiet") ? new Counter(options, consumed, stop) : new Listener(options));
        }
    }

    static void run(Options options) throws Exception {
        Consuming only = new Consuming(options, null, 1);
        only.start();
        CountDownLatch stopped = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            only.stop.countDown();
            try {
                // An orderly stop ends with 0, where the JVM would report the signal.
                Runtime.getRuntime().halt(stopped.await(30, TimeUnit.SECONDS) ? 0 : 1);
            } catch (InterruptedException cut) {
                Thread.currentThread().interrupt();
            }
        }));
        watchInput();
        do {
            only.tellAssignment();
        } while (!only.stop.await(50, TimeUnit.MILLISECONDS));
        only.stop("signal");
        stopped.countDown();
    }

    void start() throws Exception {
        consumer.start();
        String id = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        event("started").put("group", consumer.getConsumerGroup()).put("client_id", id).print();
    }

    void stop(String reason) {
        consumer.shutdown();
        event("stopped").put("reason", reason).put("consumed", consumed.get()).print();
    }

    private Json event(String name) {
        Json json = Json.event(name);
        return member == null ? json : json.put("member", member);
    }

    private static void watchInput() {
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (java.io.IOException closed) {
                System.err.println("Peer: standard input: " + closed);
            }
            System.exit(0);
        });
        watcher.setDaemon(true);
        watcher.start();
    }

    /** Queues held are those with a process queue; the client has no call-back that says so on its own. */
    void tellAssignment() {
        Set<String> now = new TreeSet<>();
        for (MessageQueue queue : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) {
            now.add("[" + Json.quoted(queue.getTopic()) + "," + Json.quoted(queue.getBrokerName()) + "," + queue.getQueueId() + "]");
        }
        tellDifference("revoked", held, now, now.size());
        tellDifference("assigned", now, held, now.size());
        held = now;
    }

    private void tellDifference(String event, Set<String> from, Set<String> without, int owned) {
        Set<String> difference = new TreeSet<>(from);
        difference.removeAll(without);
        if (!difference.isEmpty()) {
            event(event).raw("queues", "[" + String.join(",", difference) + "]").put("owned", owned).print();
        }
    }

    /** Only counts, for measuring: with --count it tells rate and CPU time from the first message to that many, and stops. */
    private static final class Counter implements MessageListenerConcurrently {
        private final long count;
        private final AtomicLong consumed;
        private final CountDownLatch stop;
        private volatile long firstNanos;
        private volatile long firstCpuNanos;

        Counter(Options options, AtomicLong consumed, CountDownLatch stop) {
            this.count = options.number("--count", Integer.MAX_VALUE);
            this.consumed = consumed;
            this.stop = stop;
        }

        @Override
        public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
            long before = consumed.getAndAdd(messages.size());
            if (before == 0) {
                firstNanos = System.nanoTime();
                firstCpuNanos = cpuNanos();
            }
            if (before < count && before + messages.size() >= count) {
                long millis = (System.nanoTime() - firstNanos) / 1_000_000;
                Json.event("measured").put("consumed", before + messages.size()).put("millis", millis)
                    .put("cpu_millis", (cpuNanos() - firstCpuNanos) / 1_000_000)
                    .put("cpu_millis_with_start", cpuNanos() / 1_000_000).print();
                stop.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }

        private static long cpuNanos() {
            return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
        }
    }

    private final class Listener implements MessageListenerConcurrently {
        private final boolean alwaysFail;
        private final int workMillis;

        Listener(Options options) {
            this.alwaysFail = options.has("--always-fail");
            this.workMillis = options.number("--work-ms", 0);
        }

        @Override
        public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
            return tell(messages, context.getMessageQueue())
                ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER;
        }

        ConsumeOrderlyStatus consumeInOrder(List<MessageExt> messages, ConsumeOrderlyContext context) {
            return tell(messages, context.getMessageQueue())
                ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
        }

        private boolean tell(List<MessageExt> messages, MessageQueue queue) {
            for (MessageExt message : messages) {
                if (workMillis > 0) {
                    try {
                        Thread.sleep(workMillis);
                    } catch (InterruptedException cut) {
                        Thread.currentThread().interrupt();
                        return false;
                    }
                }
                consumed.incrementAndGet();
                event("message").put("topic", message.getTopic()).put("broker", queue.getBrokerName())
                    .put("queue", message.getQueueId()).put("offset", message.getQueueOffset())
                    .put("msg_id", message.getMsgId()).put("unique_key", message.getProperty("UNIQ_KEY"))
                    .put("tags", message.getTags()).put("keys", message.getKeys())
                    .put("reconsume_times", message.getReconsumeTimes())
                    .put("born", message.getBornTimestamp()).put("stored", message.getStoreTimestamp())
                    .put("properties", message.getProperties())
                    .put("body_len", message.getBody().length).put("body_sha256", Json.sha256(message.getBody()))
                    .put("result", alwaysFail ? "retry" : "ok").put("at", microseconds()).print();
            }
            return !alwaysFail;
        }

        private long microseconds() {
            java.time.Instant now = java.time.Instant.now();
            return now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
        }
    }
}
