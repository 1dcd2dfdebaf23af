package lagwise.follow;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;

/**
 * Even counts with as few moves as even counts allow, where every member may have every partition (KIP-615). Counts
 * differ by at most one; as many partitions as possible stay with their owner; topics are spread over the members.
 */
final class EvenSticky {
    /** Neighbours are of different topics, so what is given out in this order spreads every topic. */
    private static final Comparator<TopicPartition> SPREAD =
        Comparator.comparingInt(TopicPartition::partition).thenComparing(TopicPartition::topic);

    private final List<TopicPartition> partitions;
    private final Map<TopicPartition, String> owners;
    private final List<String> members;
    private final int floor;

    private EvenSticky(List<TopicPartition> partitions, Map<TopicPartition, String> owners, List<String> members) {
        this.partitions = partitions.stream().sorted(SPREAD).toList();
        this.owners = owners;
        this.members = members;
        this.floor = partitions.size() / members.size();
    }

    /**
     * A member for every partition.
     *
     * @param owners member id by partition, for those that one of these members owns
     * @param members at least one, in the order that breaks ties
     */
    static Map<TopicPartition, String> assign(
        List<TopicPartition> partitions, Map<TopicPartition, String> owners, List<String> members) {
        return new EvenSticky(partitions, owners, members).assigned();
    }

    private Map<TopicPartition, String> assigned() {
        Map<String, Integer> quotas = quotas();
        Map<String, Integer> kept = new HashMap<>();
        Map<TopicPartition, String> assigned = new HashMap<>();
        List<TopicPartition> free = new ArrayList<>();
        for (TopicPartition partition : partitions) {
            String owner = owners.get(partition);
            if (owner != null && kept.getOrDefault(owner, 0) < quotas.get(owner)) {
                assigned.put(partition, owner);
                kept.merge(owner, 1, Integer::sum);
            } else {
                free.add(partition);
            }
        }
        List<String> takers = takers(quotas, kept);
        for (int at = 0; at < free.size(); at++) {
            assigned.put(free.get(at), takers.get(at));
        }
        return assigned;
    }

    /** One more than the floor for as many members as it takes: first those that own more, so that they keep it. */
    private Map<String, Integer> quotas() {
        Map<String, Integer> owned = new HashMap<>();
        owners.values().forEach(owner -> owned.merge(owner, 1, Integer::sum));
        int larger = partitions.size() % members.size();
        Map<String, Integer> quotas = new HashMap<>();
        members.stream()
            .sorted(Comparator.comparing((String member) -> owned.getOrDefault(member, 0) <= floor))
            .forEach(member -> quotas.put(member, quotas.size() < larger ? floor + 1 : floor));
        return quotas;
    }

    /** The member of each free partition: one after the other is filled up to the floor, then each that is due one more. */
    private List<String> takers(Map<String, Integer> quotas, Map<String, Integer> kept) {
        List<String> takers = new ArrayList<>();
        for (String member : members) {
            for (int has = kept.getOrDefault(member, 0); has < floor; has++) {
                takers.add(member);
            }
        }
        members.stream().filter(member -> quotas.get(member) > Math.max(kept.getOrDefault(member, 0), floor))
            .forEach(takers::add);
        return takers;
    }
}
