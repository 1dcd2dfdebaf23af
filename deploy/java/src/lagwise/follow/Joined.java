package lagwise.follow;

import java.util.List;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.TopicPartition;

/**
 * A member as the coordinator shows it to the leader.
 *
 * @param topics that it subscribes to
 * @param data what it had, and whether it goes on reading that while it joins
 */
record Joined(
    String memberId,
    Optional<String> instanceId,
    Set<String> topics,
    SubscriptionData data,
    Optional<String> rack) implements Comparable<Joined> {

    /**
     * Reads a subscription. What a member holds is what its client says, not its assignor: a Java assignor is not told
     * of a loss, so what it remembers may be gone, and nobody would ever give it up. What it remembers is its past then.
     */
    static Joined of(String memberId, Subscription subscription) {
        SubscriptionData said = SubscriptionData.decode(subscription.userData());
        List<TopicPartition> held = subscription.ownedPartitions();
        int generation = said == SubscriptionData.UNKNOWN
            ? subscription.generationId().orElse(SubscriptionData.NO_GENERATION) : said.generation();
        return new Joined(
            memberId,
            subscription.groupInstanceId(),
            Set.copyOf(subscription.topics()),
            new SubscriptionData(
                held.isEmpty() ? said.claims() : held, generation, said.planEpoch(), !held.isEmpty()),
            subscription.rackId());
    }

    /** Static members first, by instance id, then the others by member id: the order of Kafka's assignors. */
    @Override
    public int compareTo(Joined other) {
        if (instanceId.isPresent() != other.instanceId.isPresent()) {
            return instanceId.isPresent() ? -1 : 1;
        }
        int byName = instanceId.orElse(memberId).compareTo(other.instanceId.orElse(other.memberId));
        return byName != 0 ? byName : memberId.compareTo(other.memberId);
    }
}
