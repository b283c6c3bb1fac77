import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Every way to send, and that each message arrives once. */
final class Producers {
    private Producers() {
    }

    interface Sending {
        void send(DefaultMQProducer producer, String topic) throws Exception;
    }

    static void cases(Suite suite) {
        suite.add("producer: sync", cluster -> arrives(cluster, (producer, topic) -> {
            for (String number : Suite.numbers(20)) {
                SendResult result = producer.send(Cluster.message(topic, number));
                Suite.equal(SendStatus.SEND_OK, result.getSendStatus(), "status");
                Suite.check(result.getOffsetMsgId() != null && result.getMsgId() != null, "both ids are there");
            }
        }));
        suite.add("producer: async", cluster -> arrives(cluster, (producer, topic) -> {
            CountDownLatch sent = new CountDownLatch(20);
            AtomicInteger errors = new AtomicInteger();
            for (String number : Suite.numbers(20)) {
                producer.send(Cluster.message(topic, number), new SendCallback() {
                    @Override
                    public void onSuccess(SendResult result) {
                        sent.countDown();
                    }

                    @Override
                    public void onException(Throwable why) {
                        errors.incrementAndGet();
                        sent.countDown();
                    }
                });
            }
            Suite.check(sent.await(60, TimeUnit.SECONDS), "all call-backs came");
            Suite.equal(0, errors.get(), "errors");
        }));
        suite.add("producer: one-way", cluster -> arrives(cluster, (producer, topic) -> {
            producer.send(Cluster.message(topic, "0"));
            for (String number : Suite.numbers(20).subList(1, 20)) {
                producer.sendOneway(Cluster.message(topic, number));
            }
        }));
        suite.add("producer: batch", cluster -> arrives(cluster, (producer, topic) -> {
            List<Message> batch = new ArrayList<>();
            for (String number : Suite.numbers(20)) {
                batch.add(Cluster.message(topic, number));
            }
            Suite.equal(SendStatus.SEND_OK, producer.send(batch).getSendStatus(), "status");
        }));
        suite.add("producer: to one queue, by selector and by name", cluster -> arrives(cluster, (producer, topic) -> {
            List<MessageQueue> queues = producer.fetchPublishMessageQueues(topic);
            for (String number : Suite.numbers(10)) {
                SendResult result = producer.send(Cluster.message(topic, number), (all, message, wanted) -> all.get((int) wanted), 1);
                Suite.check(queues.contains(result.getMessageQueue()), "the queue is one of the topic");
            }
            for (String number : Suite.numbers(20).subList(10, 20)) {
                SendResult result = producer.send(Cluster.message(topic, number), queues.get(2));
                Suite.equal(queues.get(2), result.getMessageQueue(), "queue");
            }
        }));
        suite.add("producer: a large body is compressed and arrives whole", cluster -> {
            StringBuilder large = new StringBuilder();
            while (large.length() < 100_000) {
                large.append("large ").append(large.length());
            }
            String topic = Cluster.unique("large");
            DefaultMQProducer producer = cluster.producer();
            producer.send(Cluster.message(topic, large.toString()));
            producer.shutdown();
            Set<String> seen = received(cluster, topic, 1);
            Suite.check(seen.contains(large.toString()), "the body is the one that was sent");
        });
        suite.add("producer: delayed by level", cluster -> {
            String topic = Cluster.unique("delayed");
            DefaultMQProducer producer = cluster.producer();
            Message message = Cluster.message(topic, "0");
            message.setDelayTimeLevel(1);
            long before = System.currentTimeMillis();
            producer.send(message);
            producer.shutdown();
            received(cluster, topic, 1);
            Suite.check(System.currentTimeMillis() - before >= 100, "not before its delay");
        });
    }

    /** Sends "0" to "19" in some way, and reads them. */
    private static void arrives(Cluster cluster, Sending sending) throws Exception {
        String topic = Cluster.unique("produced");
        DefaultMQProducer producer = cluster.producer();
        AdminTools.expect(cluster, List.of("success"), "updateTopic", "-c", "DefaultCluster", "-t", topic, "-r", "4", "-w", "4");
        Suite.await("the route of the new topic", () -> producer.fetchPublishMessageQueues(topic).size() == 4);
        sending.send(producer, topic);
        producer.shutdown();
        Suite.equal(new TreeSet<>(Suite.numbers(20)), received(cluster, topic, 20), "bodies");
    }

    static Set<String> received(Cluster cluster, String topic, int count) throws Exception {
        Set<String> seen = new ConcurrentSkipListSet<>();
        AtomicInteger deliveries = new AtomicInteger();
        DefaultMQPushConsumer consumer = cluster.consumer(Cluster.unique("group"));
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> seen.add(Cluster.text(message)));
            deliveries.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Suite.await(count + " messages of " + topic, () -> deliveries.get() >= count);
        consumer.shutdown();
        Suite.equal(count, deliveries.get(), "deliveries");
        return new TreeSet<>(seen);
    }
}
