import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Commands from standard input, a line each; every answer ends with an event `done` or `failed`. */
final class Serving {
    private static final int READ_AND_WRITE = 6;
    private final String namesrv;
    private final String broker;
    private final DefaultMQAdminExt admin;

    private Serving(Options options) {
        namesrv = options.require("--namesrv");
        broker = options.require("--broker");
        admin = new DefaultMQAdminExt(10_000L);
        admin.setNamesrvAddr(namesrv);
        admin.setInstanceName("suite-" + System.nanoTime());
    }

    static void run(Options options) throws Exception {
        Serving serving = new Serving(options);
        serving.admin.start();
        Json.event("started").print();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try {
                serving.answer(line.trim().split(" +"));
            } catch (Exception failure) {
                Json.event("failed").put("error", line + ": " + failure).print();
            }
        }
        serving.admin.shutdown();
        System.exit(0);
    }

    private void answer(String[] words) throws Exception {
        switch (words[0]) {
            case "create-topic":
                int queues = Integer.parseInt(words[2]);
                String at = words.length > 3 ? words[3] : broker;
                admin.createAndUpdateTopicConfig(at, new TopicConfig(words[1], queues, queues, READ_AND_WRITE));
                Json.event("done").print();
                break;
            case "produce":
                Producing.run(namesrv, new Options(words, 1));
                break;
            case "committed":
                committed(words[1], words[2]);
                break;
            case "lite-pull":
                LitePulling.run(namesrv, words[1], words[2], Integer.parseInt(words[3]));
                Json.event("done").print();
                break;
            default:
                throw new IllegalArgumentException("unknown command");
        }
    }

    /** What the broker has stored for a group: per queue of the topic the committed offset and the end of the queue. */
    private void committed(String group, String topic) throws Exception {
        Map<String, String> offsets = new TreeMap<>();
        admin.examineConsumeStats(group).getOffsetTable().forEach((queue, offset) -> {
            if (queue.getTopic().equals(topic)) {
                offsets.put(topic + "/" + queue.getBrokerName() + "/" + queue.getQueueId(),
                    offset.getConsumerOffset() + " " + offset.getBrokerOffset());
            }
        });
        Json.event("committed").put("offsets", offsets).print();
        Json.event("done").print();
    }
}
