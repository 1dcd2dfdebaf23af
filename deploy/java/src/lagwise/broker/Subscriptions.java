package lagwise.broker;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * Who reads which topics.
 *
 * @param group the group as the coordinator describes it
 * @param counts partitions of each topic that somebody reads and that has any
 * @param areEqual whether all members subscribe to the same topics, so that those of one say it all
 */
record Subscriptions(GroupSpec group, Map<Uuid, Integer> counts, boolean areEqual) {

    static Subscriptions of(GroupSpec group, SubscribedTopicDescriber topics) {
        boolean areEqual = group.subscriptionType() == SubscriptionType.HOMOGENEOUS;
        Collection<String> ids = group.memberIds();
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String id : ids) {
            for (Uuid topic : group.memberSubscription(id).subscribedTopicIds()) {
                counts.computeIfAbsent(topic, topics::numPartitions);
            }
            if (areEqual) {
                break;
            }
        }
        // A topic that was deleted a moment ago has -1.
        counts.values().removeIf(count -> count <= 0);
        return new Subscriptions(group, counts, areEqual);
    }

    /** The topics that the member subscribes to, some of which may not be there. */
    Set<Uuid> of(String memberId) {
        return group.memberSubscription(memberId).subscribedTopicIds();
    }

    /** Whether there is a partition that the member could read. */
    boolean readsAnything(String memberId) {
        return areEqual ? !counts.isEmpty() : of(memberId).stream().anyMatch(counts::containsKey);
    }
}
