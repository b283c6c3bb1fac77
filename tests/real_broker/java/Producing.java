import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends messages that use what the format offers: text and binary bodies, some over the 4 KiB from which the client
 * compresses, tags, several keys, properties, text outside ASCII and outside the basic plane. Each message is told with
 * the digest of the body that was sent, which is what a consumer has to find.
 */
final class Producing {
    private static final String[] TAGS = {"TagA", "TagB", "\u6807\u7b7e", null};
    private static final int PLAIN_BATCH = 100;
    private static final String TEXT = "Gr\u00f6\u00dfe \u4ef7\u683c \ud83d\ude80 a=b;c ";

    private Producing() {
    }

    static void run(String namesrv, Options options) throws Exception {
        String topic = options.require("--topic");
        int count = options.number("--count", 1);
        String tag = options.get("--tags", null);
        int plainSize = options.number("--size", -1);
        int threads = options.number("--threads", 4);
        DefaultMQProducer producer = new DefaultMQProducer("suite_producer");
        producer.setNamesrvAddr(namesrv);
        producer.setInstanceName("suite-" + System.nanoTime());
        producer.setSendMsgTimeout(10_000);
        producer.start();
        AtomicInteger next = new AtomicInteger();
        AtomicInteger failed = new AtomicInteger();
        CountDownLatch finished = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            new Thread(() -> {
                int step = plainSize < 0 ? 1 : PLAIN_BATCH;
                for (int seq = next.getAndAdd(step); seq < count; seq = next.getAndAdd(step)) {
                    try {
                        if (plainSize < 0) {
                            send(producer, topic, seq, tag);
                        } else {
                            sendPlain(producer, topic, Math.min(step, count - seq), plainSize);
                        }
                    } catch (Exception failure) {
                        failed.incrementAndGet();
                        System.err.println("Peer: message " + seq + " to " + topic + ": " + failure);
                    }
                }
                finished.countDown();
            }).start();
        }
        finished.await();
        producer.shutdown();
        if (failed.get() > 0) {
            throw new IllegalStateException(failed.get() + " of " + count + " messages could not be sent");
        }
        Json.event("done").put("sent", count).put("failed", 0).print();
    }

    /** Equal messages in batches and without a word: what measurements consume. */
    private static void sendPlain(DefaultMQProducer producer, String topic, int count, int size) throws Exception {
        List<Message> batch = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            batch.add(new Message(topic, new byte[size]));
        }
        producer.send(batch);
    }

    private static void send(DefaultMQProducer producer, String topic, int seq, String tag) throws Exception {
        Message message = new Message(topic, body(seq));
        String tags = tag == null ? TAGS[seq % TAGS.length] : tag;
        if (tags != null) {
            message.setTags(tags);
        }
        String keys = "java-" + seq + " schl\u00fcssel-" + seq;
        message.setKeys(keys);
        Map<String, String> properties = new LinkedHashMap<>();
        properties.put("seq", Integer.toString(seq));
        properties.put("text", TEXT + seq);
        properties.put("\u540d\u5b57", "v");
        properties.forEach(message::putUserProperty);
        byte[] body = message.getBody();
        String digest = Json.sha256(body);
        SendResult result = producer.send(message);
        Json.event("sent").put("seq", seq).put("status", result.getSendStatus().name())
            .put("broker", result.getMessageQueue().getBrokerName()).put("queue", result.getMessageQueue().getQueueId())
            .put("offset", result.getQueueOffset()).put("msg_id", result.getMsgId()).put("offset_msg_id", result.getOffsetMsgId())
            .put("tags", tags).put("keys", keys).put("properties", properties)
            .put("body_len", body.length).put("body_sha256", digest).print();
    }

    /** Sizes from a few bytes to 11 KiB; every 25th is over 4 KiB. */
    private static byte[] body(int seq) {
        int size = seq % 25 == 24 ? 5_000 + seq % 7 * 1_000 : seq % 600;
        ByteArrayOutputStream body = new ByteArrayOutputStream(size + 16);
        byte[] head = (seq + " ").getBytes(StandardCharsets.US_ASCII);
        body.write(head, 0, head.length);
        byte[] filler = TEXT.getBytes(StandardCharsets.UTF_8);
        if (seq % 2 == 1) {
            filler = new byte[size];
            new Random(seq).nextBytes(filler);
        }
        for (int i = 0; i < size; i++) {
            body.write(filler[i % filler.length]);
        }
        return body.toByteArray();
    }
}
