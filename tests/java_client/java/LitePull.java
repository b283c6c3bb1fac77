import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The lite pull consumer, in both of its modes. */
final class LitePull {
    private LitePull() {
    }

    static void cases(Suite suite) {
        suite.add("lite pull: subscribe, commit, and go on in another member", cluster -> {
            String topic = Cluster.unique("pulled");
            String group = Cluster.unique("group");
            Consumers.send(cluster, topic, 20);
            DefaultLitePullConsumer first = consumer(cluster, group);
            first.setAutoCommit(false);
            first.subscribe(topic, "*");
            first.start();
            Suite.equal(new TreeSet<>(Suite.numbers(20)), poll(first, 20), "bodies");
            first.commitSync();
            first.shutdown();
            Consumers.send(cluster, topic, 5);
            DefaultLitePullConsumer second = consumer(cluster, group);
            second.subscribe(topic, "*");
            second.start();
            Suite.equal(new TreeSet<>(Suite.numbers(5)), poll(second, 5), "bodies behind the committed offset");
            second.shutdown();
        });
        suite.add("lite pull: assign, seek, offset by time", cluster -> {
            String topic = Cluster.unique("assigned");
            Consumers.send(cluster, topic, 20);
            DefaultLitePullConsumer consumer = consumer(cluster, Cluster.unique("group"));
            consumer.start();
            Suite.await("the queues", () -> !consumer.fetchMessageQueues(topic).isEmpty());
            Collection<MessageQueue> queues = consumer.fetchMessageQueues(topic);
            consumer.assign(queues);
            for (MessageQueue queue : queues) {
                consumer.seekToBegin(queue);
            }
            Suite.equal(new TreeSet<>(Suite.numbers(20)), poll(consumer, 20), "bodies from the beginning");
            for (MessageQueue queue : queues) {
                Suite.equal(0L, consumer.offsetForTimestamp(queue, 0L), "the first offset");
                consumer.seek(queue, 0);
            }
            Suite.equal(new TreeSet<>(Suite.numbers(20)), poll(consumer, 20), "bodies once more");
            consumer.shutdown();
        });
    }

    private static DefaultLitePullConsumer consumer(Cluster cluster, String group) {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(cluster.nameServer);
        consumer.setInstanceName(Cluster.unique("instance"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setMqClientApiTimeout(15_000);
        return consumer;
    }

    private static Set<String> poll(DefaultLitePullConsumer consumer, int count) throws Exception {
        Set<String> seen = new TreeSet<>();
        Suite.await(count + " messages", () -> {
            List<MessageExt> messages = consumer.poll(500);
            messages.forEach(message -> seen.add(Cluster.text(message)));
            return seen.size() >= count;
        });
        return seen;
    }
}
