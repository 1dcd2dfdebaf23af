package lagwise.follow;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Assigns what lagwise publishes for the group, or else what Kafka's sticky assignor would: eager.
 *
 * <pre>partition.assignment.strategy=lagwise.follow.LagwiseAssignor,org.apache.kafka.clients.consumer.RangeAssignor</pre>
 *
 * <p>All settings are properties of the consumer, and all may be left out: {@value FollowConfig#CLUSTER},
 * {@value FollowConfig#CONTROL_TOPIC} and {@value FollowConfig#ACKS_TOPIC}. Servers and security are those of the
 * consumer. A plan is applied in a rebalance of the members that it was made for, which a {@link FollowingConsumer} in
 * the group starts at once and an assignor cannot. Trouble with the topics of lagwise is logged and never reaches the
 * consumer.
 */
public class LagwiseAssignor implements ConsumerPartitionAssignor, Configurable {
    private static final Logger LOG = LoggerFactory.getLogger(LagwiseAssignor.class);
    private static final Cleaner CLEANER = Cleaner.create();

    /** A leader that has read less than its members waits so long for the rest. */
    private static final long EPOCH_WAIT_MS = 1000;

    private final RebalanceProtocol protocol;
    private ControlLink link;
    private Membership membership;

    /** The client makes it, and calls {@link #configure} next. */
    public LagwiseAssignor() {
        this(RebalanceProtocol.EAGER);
    }

    LagwiseAssignor(RebalanceProtocol protocol) {
        this.protocol = protocol;
    }

    @Override
    public void configure(Map<String, ?> properties) {
        FollowConfig config = FollowConfig.of(properties);
        ControlState state = new ControlState(config.cluster(), config.group());
        membership = new Membership(state, protocol == RebalanceProtocol.COOPERATIVE);
        link = new ControlLink(config, state);
        config.handle().ifPresentOrElse(handle -> handle.attach(membership, link), () ->
            LOG.info("This consumer of group {} starts no rebalance for a plan: a FollowingConsumer does", config.group()));
        // No client tells its assignors that it was closed; this one goes when its consumer does.
        CLEANER.register(this, link::stop);
    }

    @Override
    public String name() {
        return "lagwise";
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        // One only: an assignor is not told which was selected, and has to say whether it still reads what it claims.
        return List.of(protocol);
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        link.start();
        return membership.subscriptionData().encode();
    }

    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription subscriptions) {
        GroupView group = GroupView.of(metadata, subscriptions);
        membership.epochToAwait(group).ifPresent(epoch -> link.awaitEpoch(epoch, EPOCH_WAIT_MS));
        return new GroupAssignment(
            membership.lead(group, new KafkaSticky(metadata), System.currentTimeMillis(), LagwiseAssignor::say));
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        membership.assigned(assignment, metadata.generationId(), metadata.memberId(), System.currentTimeMillis())
            .ifPresent(link::acknowledge);
    }

    private static void say(Optional<Long> planEpoch, String why) {
        LOG.info("Assigned the group (plan epoch {}): {}", planEpoch.map(String::valueOf).orElse("none"), why);
    }
}
