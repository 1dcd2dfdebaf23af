package lagwise.broker;

import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;

/**
 * What one member is given.
 *
 * @param partitions numbers by topic id; a topic without any is not in it, as Kafka compares targets by equality
 */
record Assigned(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {
    static final Assigned NOTHING = new Assigned(Map.of());
}
