import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Half messages: what is committed arrives, what is rolled back does not, what is unknown is asked about. */
final class Transactions {
    private Transactions() {
    }

    static void cases(Suite suite) {
        suite.add("producer: transactional", cluster -> {
            String topic = Cluster.unique("transactions");
            Set<String> asked = new ConcurrentSkipListSet<>();
            TransactionMQProducer producer = new TransactionMQProducer(Cluster.unique("producers"));
            producer.setNamesrvAddr(cluster.nameServer);
            producer.setInstanceName(Cluster.unique("instance"));
            producer.setSendMsgTimeout(15_000);
            producer.setMqClientApiTimeout(15_000);
            producer.setTransactionListener(new TransactionListener() {
                @Override
                public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                    return (LocalTransactionState) argument;
                }

                @Override
                public LocalTransactionState checkLocalTransaction(MessageExt message) {
                    asked.add(Cluster.text(message));
                    return LocalTransactionState.COMMIT_MESSAGE;
                }
            });
            producer.start();
            producer.sendMessageInTransaction(Cluster.message(topic, "rolled back"), LocalTransactionState.ROLLBACK_MESSAGE);
            producer.sendMessageInTransaction(Cluster.message(topic, "committed"), LocalTransactionState.COMMIT_MESSAGE);
            producer.sendMessageInTransaction(Cluster.message(topic, "asked"), LocalTransactionState.UNKNOW);
            Suite.equal(new TreeSet<>(Set.of("committed", "asked")), Producers.received(cluster, topic, 2), "bodies");
            Suite.equal(Set.of("asked"), asked, "what the broker asked about");
            producer.shutdown();
        });
    }
}
