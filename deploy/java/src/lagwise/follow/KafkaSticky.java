package lagwise.follow;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Kafka's own {@link StickyAssignor} over the claims of this group. What a cooperative member has yet to give up is
 * taken out afterwards, as it is for a plan.
 */
final class KafkaSticky implements Leader.Fallback {
    private static final Logger LOG = LoggerFactory.getLogger(KafkaSticky.class);

    private final Cluster cluster;

    KafkaSticky(Cluster cluster) {
        this.cluster = cluster;
    }

    @Override
    public Map<TopicPartition, String> assign(GroupView group) {
        // Kafka's sticky gives partitions also to members that read nothing, and its roundrobin fails without readers.
        List<Joined> readers = group.members().values().stream()
            .filter(member -> member.topics().stream().anyMatch(topic -> group.counts().getOrDefault(topic, 0) > 0))
            .toList();
        if (readers.isEmpty()) {
            return Map.of();
        }
        try {
            return owners(new StickyAssignor(), group, readers);
        } catch (RuntimeException error) {
            LOG.warn("Kafka's sticky assignor failed ({}): its roundrobin assigns", error.toString());
            return owners(new RoundRobinAssignor(), group, readers);
        }
    }

    private Map<TopicPartition, String> owners(
        ConsumerPartitionAssignor assignor, GroupView group, List<Joined> readers) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        readers.forEach(member -> subscriptions.put(member.memberId(), subscription(member, group)));
        Map<TopicPartition, String> owners = new HashMap<>();
        assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment()
            .forEach((id, assignment) -> assignment.partitions().forEach(partition -> owners.put(partition, id)));
        return owners;
    }

    private static Subscription subscription(Joined member, GroupView group) {
        Subscription subscription = new Subscription(
            List.copyOf(member.topics()), userData(member, group), List.of(), member.data().generation(),
            member.rack());
        subscription.setGroupInstanceId(member.instanceId());
        return subscription;
    }

    /** Claims in the form that {@link StickyAssignor} reads since KIP-341; it fails on those that cannot be true. */
    private static ByteBuffer userData(Joined member, GroupView group) {
        Set<TopicPartition> claims = new HashSet<>(member.data().claims());
        claims.removeIf(claim -> !group.has(claim) || !group.reads(member.memberId(), claim));
        return new WireWriter().topicPartitions(claims).int32(member.data().generation()).toBuffer();
    }
}
