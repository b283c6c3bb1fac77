import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** A lite pull consumer that takes some messages, commits them and leaves its group. */
final class LitePulling {
    private static final long PATIENCE = 60_000;

    private LitePulling() {
    }

    static void run(String namesrv, String group, String topic, int count) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        consumer.setMqClientApiTimeout(15_000);
        consumer.subscribe(topic, "*");
        consumer.start();
        try {
            long deadline = System.nanoTime() + PATIENCE * 1_000_000;
            for (int polled = 0; polled < count;) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(polled + " of " + count + " messages within " + PATIENCE + " ms");
                }
                List<MessageExt> messages = consumer.poll(1_000);
                for (MessageExt message : messages) {
                    Json.event("polled").put("queue", message.getQueueId()).put("offset", message.getQueueOffset()).print();
                }
                polled += messages.size();
            }
            consumer.commitSync();
        } finally {
            // Stores what was committed.
            consumer.shutdown();
        }
    }
}
