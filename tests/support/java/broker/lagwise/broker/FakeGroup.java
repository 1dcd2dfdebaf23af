package lagwise.broker;

import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/** A group as a coordinator describes it to an assignor, with names for topics. */
final class FakeGroup implements GroupSpec, SubscribedTopicDescriber {
    private final Map<Uuid, Integer> counts = new HashMap<>();
    private final Map<String, Set<Uuid>> subscriptions = new LinkedHashMap<>();
    private final Map<String, Map<Uuid, Set<Integer>>> assigned = new HashMap<>();

    static Uuid id(String topic) {
        return new Uuid(7, topic.hashCode());
    }

    FakeGroup topic(String topic, int partitions) {
        counts.put(id(topic), partitions);
        return this;
    }

    FakeGroup without(String topic) {
        counts.remove(id(topic));
        return this;
    }

    FakeGroup member(String memberId, String... topics) {
        Set<Uuid> ids = new HashSet<>();
        for (String topic : topics) {
            ids.add(id(topic));
        }
        subscriptions.put(memberId, ids);
        return this;
    }

    FakeGroup leave(String memberId) {
        subscriptions.remove(memberId);
        assigned.remove(memberId);
        return this;
    }

    FakeGroup has(String memberId, String topic, Integer... partitions) {
        assigned.computeIfAbsent(memberId, any -> new HashMap<>()).put(id(topic), Set.of(partitions));
        return this;
    }

    /** It goes on with what an assignor has given it, as the coordinator's records do. */
    FakeGroup take(GroupAssignment given) {
        assigned.clear();
        given.members().forEach((memberId, one) -> {
            Map<Uuid, Set<Integer>> copy = new HashMap<>();
            one.partitions().forEach((topic, numbers) -> copy.put(topic, Set.copyOf(numbers)));
            assigned.put(memberId, copy);
        });
        return this;
    }

    int readers(Uuid topic) {
        return (int) subscriptions.values().stream().filter(topics -> topics.contains(topic)).count();
    }

    Map<Uuid, Integer> counts() {
        return counts;
    }

    @Override
    public Collection<String> memberIds() {
        return subscriptions.keySet();
    }

    @Override
    public SubscriptionType subscriptionType() {
        return new HashSet<>(subscriptions.values()).size() <= 1
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
    }

    @Override
    public boolean isPartitionAssigned(Uuid topic, int partition) {
        return assigned.values().stream().anyMatch(one -> one.getOrDefault(topic, Set.of()).contains(partition));
    }

    /** Of releases from 4.1 on. */
    public boolean isPartitionAssignable(Uuid topic, int partition) {
        return true;
    }

    @Override
    public MemberSubscription memberSubscription(String memberId) {
        Set<Uuid> topics = subscriptions.get(memberId);
        return new MemberSubscription() {
            @Override
            public Optional<String> rackId() {
                return Optional.empty();
            }

            @Override
            public Optional<String> instanceId() {
                return Optional.empty();
            }

            @Override
            public Set<Uuid> subscribedTopicIds() {
                return topics;
            }
        };
    }

    @Override
    public MemberAssignment memberAssignment(String memberId) {
        // Kafka's own assignor insists on this kind of map.
        return () -> Collections.unmodifiableMap(assigned.getOrDefault(memberId, Map.of()));
    }

    @Override
    public int numPartitions(Uuid topic) {
        return counts.getOrDefault(topic, -1);
    }

    @Override
    public Set<String> racksForPartition(Uuid topic, int partition) {
        return Set.of();
    }
}
