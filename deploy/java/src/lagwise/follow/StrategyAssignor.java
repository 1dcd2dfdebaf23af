package lagwise.follow;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A strategy under its own name, without a control topic. On the wire it is the assignor of that name of the Python
 * plug-ins, so members in Java and in Python share a group.
 */
abstract class StrategyAssignor implements ConsumerPartitionAssignor {
    private static final Logger LOG = LoggerFactory.getLogger(StrategyAssignor.class);

    private final String name;
    private Collection<TopicPartition> claims = List.of();
    private int generation = SubscriptionData.NO_GENERATION;

    StrategyAssignor(String name) {
        this.name = name;
    }

    /**
     * Where every partition should be in the end.
     *
     * @param owners member id by partition; a partition without one waits for a later rebalance
     * @param why one sentence for the log
     */
    record Target(Map<TopicPartition, String> owners, String why) {
    }

    /** The target of the group; asked of the leader only. It throws nothing: a leader that did would stop its group. */
    abstract Target target(GroupView group, Leader.Fallback sticky);

    /** The one protocol of this member. */
    abstract RebalanceProtocol protocol();

    /** Whether the partitions of one number move together (KIP-315), under an epoch in place of the generation. */
    boolean joins() {
        return false;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        // One only: an assignor is not told which was selected, and has to say whether it still reads what it claims.
        return List.of(protocol());
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        boolean holds = protocol() == RebalanceProtocol.COOPERATIVE && !claims.isEmpty();
        return new SubscriptionData(claims, generation, 0, holds).encode();
    }

    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription subscriptions) {
        GroupView group = GroupView.of(metadata, subscriptions);
        Target target = target(group, new KafkaSticky(metadata));
        LOG.info("Assigned the group by {}", target.why());
        // KIP-315: one above all received.
        long epoch = joins() ? Math.max(group.newestGeneration(), 0) + 1L : 0;
        AssignmentData data = new AssignmentData(epoch, AssignmentData.Outcome.SILENT, "");
        Map<String, Assignment> answers = new HashMap<>();
        group.byMember(Leader.step(group, target.owners(), joins()))
            .forEach((id, partitions) -> answers.put(id, new Assignment(partitions, data.encode())));
        return new GroupAssignment(answers);
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        claims = List.copyOf(assignment.partitions());
        // What a leader sends is not trusted to leave room in the field it is sent back in.
        generation = joins()
            ? (int) Math.min(AssignmentData.decode(assignment.userData()).epoch(), Integer.MAX_VALUE)
            : metadata.generationId();
    }
}
