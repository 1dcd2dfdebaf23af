package lagwise.follow;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;

import org.apache.kafka.common.TopicPartition;

/**
 * Even counts in every topic, and within them the largest lag placed first (KIP-169): partitions of a topic by falling
 * lag go to the subscriber with the fewest of that topic, then the least lag in it, then the first in member order.
 */
final class LagAware {
    private LagAware() {
    }

    /** What a member has of one topic. */
    private record Load(int count, long lag, int position) {
    }

    /**
     * Member id of every partition that has a subscriber.
     *
     * @param lags records by partition, of every partition of the group
     */
    static Map<TopicPartition, String> assign(GroupView group, Map<TopicPartition, Long> lags) {
        Map<TopicPartition, String> owners = new HashMap<>();
        group.counts().forEach((topic, count) -> {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                partitions.add(new TopicPartition(topic, number));
            }
            // A stable sort: equal lags stay by number.
            partitions.sort(Comparator.comparing(lags::get, Comparator.reverseOrder()));
            place(partitions, group.readers(topic), lags, owners);
        });
        return owners;
    }

    private static void place(List<TopicPartition> byLag, List<String> readers, Map<TopicPartition, Long> lags,
        Map<TopicPartition, String> owners) {
        if (readers.isEmpty()) {
            return;
        }
        PriorityQueue<Load> least = new PriorityQueue<>(
            Comparator.comparingInt(Load::count).thenComparingLong(Load::lag).thenComparingInt(Load::position));
        for (int position = 0; position < readers.size(); position++) {
            least.add(new Load(0, 0, position));
        }
        for (TopicPartition partition : byLag) {
            Load taker = least.remove();
            owners.put(partition, readers.get(taker.position()));
            least.add(new Load(taker.count() + 1, taker.lag() + lags.get(partition), taker.position()));
        }
    }
}
