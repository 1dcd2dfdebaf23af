package lagwise.follow;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.TopicPartition;

/**
 * Even counts with as few moves as they allow, in linear time, for members that all subscribe to the same topics
 * (KIP-615); cooperative unless {@value TwoProtocolAssignor#PROTOCOL} is {@code eager}.
 *
 * <p>Who comes with an older generation than the newest in the group keeps nothing of what it claims. Where
 * subscriptions differ, Kafka's sticky assignor assigns, and the log says so. In a group it is the assignor
 * {@code constrained-cooperative-sticky} of the Python plug-ins.
 */
public class ConstrainedCooperativeStickyAssignor extends TwoProtocolAssignor {
    private static final String NAME = "constrained-cooperative-sticky";

    /** The client makes it, and calls {@link #configure} next. */
    public ConstrainedCooperativeStickyAssignor() {
        super(NAME, RebalanceProtocol.COOPERATIVE);
    }

    @Override
    Target target(GroupView group, Leader.Fallback sticky) {
        if (!group.hasEqualSubscriptions()) {
            return new Target(sticky.assign(group), "sticky: subscriptions differ");
        }
        Set<String> topics = group.readTopics();
        List<TopicPartition> read =
            group.partitions().stream().filter(partition -> topics.contains(partition.topic())).toList();
        if (read.isEmpty()) {
            return new Target(Map.of(), NAME);
        }
        Ownership claims = group.claims();
        int newest = group.newestGeneration();
        Map<TopicPartition, String> owners = new HashMap<>();
        for (TopicPartition partition : read) {
            String holder = claims.holder().get(partition);
            if (holder != null && claims.generation().get(partition) >= newest) {
                owners.put(partition, holder);
            }
        }
        return new Target(EvenSticky.assign(read, owners, List.copyOf(group.members().keySet())), NAME);
    }
}
