import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/**
 * How fast the official Java client reads a topic from its start, and what that costs; the counterpart of
 * {@code examples/measure.rs}.
 *
 * <pre>
 * Measure NAMESRV TOPIC COUNT BATCH
 * </pre>
 */
public final class Measure {
    private Measure() {
    }

    public static void main(String[] args) throws Exception {
        long expected = Long.parseLong(args[2]);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        AtomicLong seen = new AtomicLong();
        CountDownLatch all = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("measure-java-" + ProcessHandle.current().pid());
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(Integer.parseInt(args[3]));
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            if (seen.addAndGet(messages.size()) >= expected) {
                all.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        long cpu = system.getProcessCpuTime();
        long begun = System.nanoTime();
        consumer.start();
        boolean done = all.await(300, TimeUnit.SECONDS);
        double seconds = (System.nanoTime() - begun) / 1e9;
        double used = (system.getProcessCpuTime() - cpu) / 1e9;
        System.out.printf("java     consumed %d messages in %.2f s: %.0f messages/s%n", seen.get(), seconds, seen.get() / seconds);
        System.out.printf("java     cpu %.2f s for a million messages%n", used * 1e6 / seen.get());
        consumer.shutdown();
        System.exit(done ? 0 : 1);
    }
}
