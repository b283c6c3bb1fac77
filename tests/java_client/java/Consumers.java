import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** Push consumers: what is filtered, repeated, kept in order, shared, and seen by everybody. */
final class Consumers {
    private Consumers() {
    }

    static void cases(Suite suite) {
        suite.add("consumer: a failed message comes again", Consumers::retry);
        suite.add("consumer: a message that keeps failing becomes a dead letter", Consumers::deadLetter);
        suite.add("consumer: tags", cluster -> filtered(cluster, consumer -> topic -> consumer.subscribe(topic, "a || b")));
        suite.add("consumer: SQL92",
            cluster -> filtered(cluster, consumer -> topic -> consumer.subscribe(topic, MessageSelector.bySql("n < 10 AND TAGS <> 'c'"))));
        suite.add("consumer: ordered", Consumers::ordered);
        suite.add("consumer: broadcasting", Consumers::broadcasting);
        suite.add("consumer: two members share, one goes on where the other left", Consumers::shared);
    }

    private static void retry(Cluster cluster) throws Exception {
        String topic = Cluster.unique("retry");
        send(cluster, topic, 5);
        Map<String, List<Integer>> tries = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = cluster.consumer(Cluster.unique("group"));
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            int times = messages.get(0).getReconsumeTimes();
            tries.computeIfAbsent(Cluster.text(messages.get(0)), body -> new CopyOnWriteArrayList<>()).add(times);
            Suite.equal(topic, messages.get(0).getTopic(), "the topic is the one it was sent to");
            return times < 2 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Suite.await("three tries of each", () -> tries.size() == 5 && tries.values().stream().allMatch(times -> times.size() >= 3));
        consumer.shutdown();
        tries.forEach((body, times) -> Suite.equal(List.of(0, 1, 2), times, "tries of " + body));
    }

    private static void deadLetter(Cluster cluster) throws Exception {
        String topic = Cluster.unique("dead");
        String group = Cluster.unique("group");
        send(cluster, topic, 1);
        AtomicInteger tries = new AtomicInteger();
        DefaultMQPushConsumer consumer = cluster.consumer(group);
        consumer.setMaxReconsumeTimes(1);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            tries.incrementAndGet();
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        Suite.await("the dead letter", () -> AdminTools.run(cluster, "topicStatus", "-t", "%DLQ%" + group).matches("(?s).*\\b0\\s+1\\s.*"));
        consumer.shutdown();
        Suite.equal(2, tries.get(), "tries");
    }

    interface Subscribing {
        void subscribe(String topic) throws Exception;
    }

    interface Filter {
        Subscribing of(DefaultMQPushConsumer consumer);
    }

    /** 30 messages with the tags a, b and c in turn and a property n; a filter for a and b with n < 10, as far as it can. */
    private static void filtered(Cluster cluster, Filter filter) throws Exception {
        String topic = Cluster.unique("filtered");
        DefaultMQProducer producer = cluster.producer();
        Set<String> wanted = new TreeSet<>();
        for (int i = 0; i < 10; i++) {
            Message message = Cluster.message(topic, String.valueOf(i));
            message.setTags(String.valueOf("abc".charAt(i % 3)));
            message.putUserProperty("n", String.valueOf(i));
            producer.send(message);
            if (i % 3 < 2) {
                wanted.add(String.valueOf(i));
            }
        }
        producer.shutdown();
        Set<String> seen = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer consumer = cluster.consumer(Cluster.unique("group"));
        filter.of(consumer).subscribe(topic);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> seen.add(Cluster.text(message)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Suite.await("the wanted messages", () -> seen.containsAll(wanted));
        consumer.shutdown();
        Suite.equal(wanted, new TreeSet<>(seen), "bodies");
    }

    private static void ordered(Cluster cluster) throws Exception {
        String topic = Cluster.unique("ordered");
        DefaultMQProducer producer = cluster.producer();
        for (int i = 0; i < 60; i++) {
            int key = i % 6;
            producer.send(Cluster.message(topic, key + ":" + i / 6), (queues, message, by) -> queues.get((int) by % queues.size()), key);
        }
        producer.shutdown();
        Map<String, List<Integer>> seen = new ConcurrentHashMap<>();
        AtomicBoolean suspended = new AtomicBoolean();
        DefaultMQPushConsumer consumer = cluster.consumer(Cluster.unique("group"));
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            context.setSuspendCurrentQueueTimeMillis(50);
            if (suspended.compareAndSet(false, true)) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            String[] parts = Cluster.text(messages.get(0)).split(":");
            seen.computeIfAbsent(parts[0], key -> Collections.synchronizedList(new ArrayList<>())).add(Integer.parseInt(parts[1]));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Suite.await("all of 60", () -> seen.values().stream().mapToInt(List::size).sum() >= 60);
        consumer.shutdown();
        seen.forEach((key, numbers) -> Suite.equal(List.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), numbers, "order of key " + key));
    }

    private static void broadcasting(Cluster cluster) throws Exception {
        String topic = Cluster.unique("broadcast");
        String group = Cluster.unique("group");
        send(cluster, topic, 20);
        List<Set<String>> seen = new ArrayList<>();
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Set<String> mine = new ConcurrentSkipListSet<>();
            DefaultMQPushConsumer consumer = cluster.consumer(group);
            broadcast(consumer);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(message -> mine.add(Cluster.text(message)));
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            consumers.add(consumer);
            seen.add(mine);
        }
        Suite.await("both see everything", () -> seen.stream().allMatch(mine -> mine.size() == 20));
        consumers.forEach(DefaultMQPushConsumer::shutdown);
    }

    /** The enumeration lives in another package in each major version. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void broadcast(DefaultMQPushConsumer consumer) throws Exception {
        for (Method method : DefaultMQPushConsumer.class.getMethods()) {
            if (method.getName().equals("setMessageModel")) {
                method.invoke(consumer, Enum.valueOf((Class) method.getParameterTypes()[0], "BROADCASTING"));
            }
        }
    }

    private static void shared(Cluster cluster) throws Exception {
        String topic = Cluster.unique("shared");
        String group = Cluster.unique("group");
        send(cluster, topic, 40);
        List<String> seen = new CopyOnWriteArrayList<>();
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        List<AtomicInteger> counts = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            AtomicInteger count = new AtomicInteger();
            DefaultMQPushConsumer consumer = cluster.consumer(group);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(message -> seen.add(Cluster.text(message)));
                count.addAndGet(messages.size());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
            consumers.add(consumer);
            counts.add(count);
        }
        Suite.await("the members are two", () -> AdminTools.run(cluster, "consumerConnection", "-g", group).split("@").length >= 3);
        Suite.await("each has a share", () -> {
            send(cluster, topic, 8);
            return counts.stream().allMatch(count -> count.get() > 0);
        });
        consumers.get(0).shutdown();
        int before = seen.size();
        send(cluster, topic, 40);
        Suite.await("the one that is left takes over", () -> seen.size() >= before + 40);
        consumers.get(1).shutdown();
    }

    static void send(Cluster cluster, String topic, int count) throws Exception {
        DefaultMQProducer producer = cluster.producer();
        for (String number : Suite.numbers(count)) {
            producer.send(Cluster.message(topic, number));
        }
        producer.shutdown();
    }
}
