package lagwise.broker;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;

/** What one member has while an assignment is made. Kafka's own sets are not copied until they change. */
final class Hand {
    private final String memberId;
    private final Set<Uuid> topics;
    private final boolean isNew;
    private final Map<Uuid, Set<Integer>> partitions = new HashMap<>();
    private final Set<Uuid> copied = new HashSet<>();
    private int size;

    /**
     * @param topics that it subscribes to
     * @param isNew whether it is given a share of what others have
     */
    Hand(String memberId, Set<Uuid> topics, boolean isNew) {
        this.memberId = memberId;
        this.topics = topics;
        this.isNew = isNew;
    }

    String memberId() {
        return memberId;
    }

    Set<Uuid> topics() {
        return topics;
    }

    boolean isNew() {
        return isNew;
    }

    int size() {
        return size;
    }

    Assigned assigned() {
        return new Assigned(partitions);
    }

    /** Goes on with all that it has of a topic. */
    void keep(Uuid topic, Set<Integer> numbers) {
        partitions.put(topic, numbers);
        size += numbers.size();
    }

    void add(Uuid topic, int number) {
        own(topic).add(number);
        size++;
    }

    /** Gives the other one a partition that it can read; false if there is none. */
    boolean giveOne(Hand other) {
        for (Uuid topic : partitions.keySet()) {
            if (other.topics.contains(topic)) {
                Set<Integer> numbers = own(topic);
                int number = numbers.iterator().next();
                numbers.remove(number);
                if (numbers.isEmpty()) {
                    partitions.remove(topic);
                    copied.remove(topic);
                }
                size--;
                other.add(topic, number);
                return true;
            }
        }
        return false;
    }

    private Set<Integer> own(Uuid topic) {
        if (copied.add(topic)) {
            partitions.put(topic, new HashSet<>(partitions.getOrDefault(topic, Set.of())));
        }
        return partitions.get(topic);
    }
}
