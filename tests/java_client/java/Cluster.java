import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** How the cases reach the cluster, and names that no two of them share. */
final class Cluster {
    private static final AtomicInteger NUMBERS = new AtomicInteger();
    final String nameServer;

    Cluster(String nameServer) {
        this.nameServer = nameServer;
    }

    static String unique(String word) {
        return word + "_" + ProcessHandle.current().pid() + "_" + NUMBERS.incrementAndGet();
    }

    DefaultMQProducer producer() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(unique("producers"));
        producer.setNamesrvAddr(nameServer);
        producer.setInstanceName(unique("instance"));
        producer.setSendMsgTimeout(15_000);
        producer.setMqClientApiTimeout(15_000);
        producer.start();
        return producer;
    }

    /** A consumer from the first offset on, with an instance of its own; the caller subscribes and starts it. */
    DefaultMQPushConsumer consumer(String group) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(unique("instance"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setMqClientApiTimeout(15_000);
        consumer.setPersistConsumerOffsetInterval(200);
        consumer.setPollNameServerInterval(1_000);
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        return consumer;
    }

    static Message message(String topic, String body) {
        return new Message(topic, body.getBytes(StandardCharsets.UTF_8));
    }

    static String text(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
