package lagwise.follow;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;

/**
 * The group as its members describe it to the leader.
 *
 * @param members by member id, in the order that breaks ties
 * @param counts partitions of every subscribed topic that has metadata, by topic
 */
record GroupView(Map<String, Joined> members, Map<String, Integer> counts) {

    static GroupView of(Collection<Joined> joined, Map<String, Integer> counts) {
        Map<String, Joined> members = new LinkedHashMap<>();
        new TreeSet<>(joined).forEach(member -> members.put(member.memberId(), member));
        return new GroupView(members, new TreeMap<>(counts));
    }

    /** The group as a client shows it to its assignor; a topic without metadata has no partitions. */
    static GroupView of(Cluster metadata, GroupSubscription subscriptions) {
        List<Joined> joined = subscriptions.groupSubscription().entrySet().stream()
            .map(member -> Joined.of(member.getKey(), member.getValue())).toList();
        Map<String, Integer> counts = new HashMap<>();
        for (Joined member : joined) {
            for (String topic : member.topics()) {
                Integer count = metadata.partitionCountForTopic(topic);
                counts.put(topic, count == null ? 0 : count);
            }
        }
        return of(joined, counts);
    }

    /** Every partition, by topic and number. */
    List<TopicPartition> partitions() {
        List<TopicPartition> partitions = new ArrayList<>();
        counts.forEach((topic, count) -> {
            for (int number = 0; number < count; number++) {
                partitions.add(new TopicPartition(topic, number));
            }
        });
        return partitions;
    }

    /** Partitions of each member, by topic and number; empty for a member without any. */
    Map<String, List<TopicPartition>> byMember(Map<TopicPartition, String> owners) {
        Map<String, List<TopicPartition>> byMember = new HashMap<>();
        members.keySet().forEach(id -> byMember.put(id, new ArrayList<>()));
        for (TopicPartition partition : partitions()) {
            if (owners.containsKey(partition)) {
                byMember.get(owners.get(partition)).add(partition);
            }
        }
        return byMember;
    }

    boolean has(TopicPartition partition) {
        return partition.partition() >= 0 && partition.partition() < counts.getOrDefault(partition.topic(), 0);
    }

    boolean reads(String memberId, TopicPartition partition) {
        return members.get(memberId).topics().contains(partition.topic());
    }

    /** Members that subscribe to a topic, in the order that breaks ties. */
    List<String> readers(String topic) {
        return members.values().stream().filter(member -> member.topics().contains(topic)).map(Joined::memberId).toList();
    }

    /** Whether every member subscribes to every topic that has partitions and a subscriber. */
    boolean hasEqualSubscriptions() {
        return counts.keySet().stream().filter(topic -> counts.get(topic) > 0).map(topic -> readers(topic).size())
            .allMatch(number -> number == 0 || number == members.size());
    }

    /** The topics that anybody reads. */
    Set<String> readTopics() {
        return members.values().stream().flatMap(member -> member.topics().stream()).collect(Collectors.toSet());
    }

    /** Who claims a partition, from a generation that may be past. */
    Ownership claims() {
        return Ownership.of(members.values());
    }

    /** Who still reads a partition. */
    Ownership holding() {
        return Ownership.of(members.values().stream().filter(member -> member.data().held()).toList());
    }

    /** Newest generation of any claim, -1 without one. */
    int newestGeneration() {
        return members.values().stream().mapToInt(member -> member.data().generation()).max()
            .orElse(SubscriptionData.NO_GENERATION);
    }

    /** Newest epoch of a plan that any member has read, 0 for none. */
    long newestEpoch() {
        return members.values().stream().mapToLong(member -> member.data().planEpoch()).max().orElse(0);
    }
}
