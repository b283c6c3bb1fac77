import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** Allocation strategies by their wire names, with the settings that mqcat takes for them. */
final class Allocating {
    private static final String NEARBY = "MACHINE_ROOM_NEARBY-";

    private Allocating() {
    }

    static AllocateMessageQueueStrategy strategy(Options options) {
        String name = options.get("--strategy", "AVG");
        if (name.startsWith(NEARBY)) {
            return new AllocateMachineRoomNearby(simple(name.substring(NEARBY.length())), new BeforeDash());
        }
        switch (name) {
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                byRoom.setConsumeridcs(new HashSet<>(Arrays.asList(options.setting("rooms").split(";"))));
                return byRoom;
            case "CONFIG":
                List<MessageQueue> queues = new ArrayList<>();
                for (String queue : options.setting("config_queues").split(",")) {
                    String[] parts = queue.split(":");
                    queues.add(new MessageQueue(parts[0], parts[1], Integer.parseInt(parts[2])));
                }
                AllocateMessageQueueByConfig byConfig = new AllocateMessageQueueByConfig();
                byConfig.setMessageQueueList(queues);
                return byConfig;
            default:
                return simple(name);
        }
    }

    private static AllocateMessageQueueStrategy simple(String name) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash();
            default:
                throw new IllegalArgumentException("--strategy: unknown name '" + name + "'");
        }
    }

    /** A room is what comes before the first dash of a broker's name or a client id. */
    private static final class BeforeDash implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return room(queue.getBrokerName());
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return room(clientId);
        }

        private static String room(String name) {
            int dash = name.indexOf('-');
            return dash < 0 ? "" : name.substring(0, dash);
        }
    }
}
