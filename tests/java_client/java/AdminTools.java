import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** The commands of `mqadmin`, run in this process, and what they print. */
final class AdminTools {
    private AdminTools() {
    }

    static void cases(Suite suite) {
        suite.add("admin: topicRoute, topicStatus, topicList, clusterList", AdminTools::topics);
        suite.add("admin: updateTopic, deleteTopic", AdminTools::changes);
        suite.add("admin: consumerConnection, consumerProgress, consumerStatus, resetOffsetByTime", AdminTools::consumers);
        suite.add("admin: queryMsgById, queryMsgByKey, queryMsgByUniqueKey, queryMsgByOffset", AdminTools::messages);
    }

    /** Runs a command and gives what it printed. */
    static synchronized String run(Cluster cluster, String command, String... arguments) throws Exception {
        List<String> words = new ArrayList<>(List.of(command));
        words.addAll(Arrays.asList(arguments));
        words.addAll(List.of("-n", cluster.nameServer));
        PrintStream out = System.out;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, "UTF-8"));
        try {
            MQAdminStartup.main0(words.toArray(new String[0]), null);
        } finally {
            System.setOut(out);
        }
        return new String(printed.toByteArray(), StandardCharsets.UTF_8);
    }

    /**
     * Runs a command until it prints all these parts: its time-outs are fixed and short for a JVM that has just started on a busy
     * machine, and some answers follow a change with a delay.
     */
    static void expect(Cluster cluster, List<String> parts, String command, String... arguments) throws Exception {
        String[] printed = {""};
        try {
            Suite.await(command + " to print " + parts, () -> {
                printed[0] = run(cluster, command, arguments);
                return parts.stream().allMatch(printed[0]::contains);
            });
        } catch (AssertionError late) {
            throw new AssertionError(late.getMessage() + ", it printed:\n" + printed[0], late);
        }
    }

    private static void topics(Cluster cluster) throws Exception {
        String topic = Cluster.unique("admin_topic");
        Consumers.send(cluster, topic, 3);
        expect(cluster, List.of("brokerDatas", "queueDatas", "readQueueNums"), "topicRoute", "-t", topic);
        expect(cluster, List.of("#Broker Name", "#Max Offset"), "topicStatus", "-t", topic);
        expect(cluster, List.of(topic), "topicList");
        expect(cluster, List.of("DefaultCluster", "127.0.0.1:"), "clusterList");
        expect(cluster, List.of("DefaultCluster", "#InTotalToday"), "clusterList", "-m");
    }

    private static void changes(Cluster cluster) throws Exception {
        String topic = Cluster.unique("admin_made");
        expect(cluster, List.of("success"), "updateTopic", "-c", "DefaultCluster", "-t", topic, "-r", "3", "-w", "3");
        expect(cluster, List.of("\"readQueueNums\":3"), "topicRoute", "-t", topic);
        expect(cluster, List.of("success"), "deleteTopic", "-c", "DefaultCluster", "-t", topic);
        Suite.await("the topic to be gone", () -> !run(cluster, "topicList").contains(topic));
    }

    private static void consumers(Cluster cluster) throws Exception {
        String topic = Cluster.unique("admin_read");
        String group = Cluster.unique("admin_group");
        Consumers.send(cluster, topic, 12);
        AtomicInteger count = new AtomicInteger();
        Set<String> seen = new ConcurrentSkipListSet<>();
        DefaultMQPushConsumer consumer = cluster.consumer(group);
        consumer.subscribe(topic, "x || *");
        consumer.unsubscribe(topic);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> seen.add(Cluster.text(message)));
            count.addAndGet(messages.size());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Suite.await("all messages", () -> count.get() >= 12);
        String id = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId();
        expect(cluster, List.of(id, topic, "CONSUME_PASSIVELY", "CLUSTERING"), "consumerConnection", "-g", group);
        expect(cluster, List.of(topic, "Diff Total: 0"), "consumerProgress", "-g", group);
        expect(cluster, List.of(id), "consumerStatus", "-g", group);
        expect(cluster, List.of("#Consumer Subscription#", topic), "consumerStatus", "-g", group, "-i", id);
        expect(cluster, List.of(topic), "resetOffsetByTime", "-g", group, "-t", topic, "-s", "0", "-f", "true");
        Suite.await("all messages once more", () -> count.get() >= 24);
        consumer.shutdown();
        Suite.equal(12, seen.size(), "bodies");
    }

    private static void messages(Cluster cluster) throws Exception {
        String topic = Cluster.unique("admin_messages");
        String key = Cluster.unique("key");
        DefaultMQProducer producer = cluster.producer();
        Message message = Cluster.message(topic, "what is looked for");
        message.setKeys(key);
        message.setTags("tagged");
        SendResult sent = producer.send(message);
        producer.shutdown();
        List<String> parts = List.of(topic, key, "tagged");
        if (isVersion5()) {
            expect(cluster, parts, "queryMsgById", "-t", topic, "-i", sent.getOffsetMsgId());
        } else {
            // An option that it does not know ends the process.
            expect(cluster, parts, "queryMsgById", "-i", sent.getOffsetMsgId());
        }
        expect(cluster, List.of(sent.getMsgId()), "queryMsgByKey", "-t", topic, "-k", key);
        expect(cluster, List.of(key), "queryMsgByUniqueKey", "-t", topic, "-i", sent.getMsgId());
        expect(cluster, parts, "queryMsgByOffset", "-t", topic, "-b", sent.getMessageQueue().getBrokerName(), "-i",
            String.valueOf(sent.getMessageQueue().getQueueId()), "-o", String.valueOf(sent.getQueueOffset()));
    }

    private static boolean isVersion5() {
        try {
            Class.forName("org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel");
            return true;
        } catch (ClassNotFoundException older) {
            return false;
        }
    }
}
