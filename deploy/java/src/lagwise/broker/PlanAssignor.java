package lagwise.broker;

import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

import javax.management.JMException;
import javax.management.ObjectName;

import org.apache.kafka.common.Configurable;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives a group of {@code group.protocol=consumer} what the plan of lagwise says, if there is one for exactly its members
 * and partitions; otherwise what {@link KeptAssignment} says. For the broker's property {@code group.consumer.assignors}.
 *
 * <p>Kafka makes an instance for each time that it reads its configuration, about nine in a broker and one in
 * StorageTool, and assigns on the thread that serves the group's heartbeats. So plans and their reader belong to the
 * process, the reader starts in a broker only, and an assignment is a look-up in memory that never throws.
 */
public final class PlanAssignor implements ConsumerGroupPartitionAssignor, Configurable {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);
    private static final Plans PLANS = new Plans();
    private static final Counters COUNTERS = new Counters(PLANS::size);
    private static final PlanReader READER = new PlanReader(PLANS, COUNTERS);

    static {
        try {
            ManagementFactory.getPlatformMBeanServer()
                .registerMBean(COUNTERS, new ObjectName("lagwise.broker:type=PlanAssignor"));
        } catch (JMException | SecurityException error) {
            LOG.info("JMX does not show lagwise's assignor: {}", error.toString());
        }
    }

    private final Plans plans;
    private final Counters counters;
    private final PlanReader reader;
    private ReaderConfig config = ReaderConfig.of(Map.of());

    /** As Kafka makes it. */
    public PlanAssignor() {
        this(PLANS, COUNTERS, READER);
    }

    PlanAssignor(Plans plans, Counters counters, PlanReader reader) {
        this.plans = plans;
        this.counters = counters;
        this.reader = reader;
    }

    @Override
    public String name() {
        return "lagwise";
    }

    @Override
    public void configure(Map<String, ?> broker) {
        config = ReaderConfig.of(broker);
        if (String.valueOf(broker.get("process.roles")).contains("broker")) {
            reader.startUnasked(config);
        }
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        try {
            reader.start(config);
            Optional<GroupAssignment> planned = planned(group, topics);
            if (planned.isPresent()) {
                counters.planned.increment();
                return planned.get();
            }
            counters.kept.increment();
            return KeptAssignment.of(group, topics, plans::isLeftEmpty);
        } catch (RuntimeException | LinkageError | OutOfMemoryError error) {
            // It would fail the heartbeats of the group, for what the group can do without.
            if (counters.failures.sum() == 0) {
                LOG.error("Lagwise's assignor fails on this broker; groups keep what they have, and nothing more", error);
            }
            counters.failures.increment();
            return unchanged(group);
        }
    }

    private static GroupAssignment unchanged(GroupSpec group) {
        return new GroupAssignment(
            group.memberIds().stream().collect(Collectors.toMap(Function.identity(), group::memberAssignment)));
    }

    private Optional<GroupAssignment> planned(GroupSpec group, SubscribedTopicDescriber topics) {
        Optional<GroupPlan> found = plans.find(group.memberIds());
        if (found.isEmpty() || found.get().isOver(System.currentTimeMillis())) {
            return Optional.empty();
        }
        GroupPlan plan = found.get();
        Optional<String> problem = plan.problem(group, topics);
        if (problem.isPresent()) {
            counters.misfits.increment();
            if (plan.isFirstProblem()) {
                LOG.info("Plan {} does not fit group {}, which keeps what it has: {}", plan.epoch(), plan.group(), problem.get());
            }
            return Optional.empty();
        }
        if (plan.isFirstApplied()) {
            LOG.info("Plan {} is the assignment of group {}", plan.epoch(), plan.group());
        }
        return Optional.of(plan.assignment(group));
    }
}
