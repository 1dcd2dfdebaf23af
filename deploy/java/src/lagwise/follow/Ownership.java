package lagwise.follow;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.TopicPartition;

/**
 * Who has a partition when several members say so: the one of the newest generation (KIP-341).
 *
 * @param holder member id by partition; without those that nobody claims, or that are contested
 * @param contested partitions that two members claim in one generation
 * @param generation newest generation of any claim, by partition
 */
record Ownership(
    Map<TopicPartition, String> holder, Set<TopicPartition> contested, Map<TopicPartition, Integer> generation) {

    static Ownership of(Collection<Joined> members) {
        Map<TopicPartition, String> holder = new HashMap<>();
        Map<TopicPartition, Integer> newest = new HashMap<>();
        Set<TopicPartition> contested = new HashSet<>();
        for (Joined member : members) {
            int claimed = member.data().generation();
            for (TopicPartition partition : member.data().claims()) {
                int known = newest.getOrDefault(partition, Integer.MIN_VALUE);
                if (claimed > known) {
                    newest.put(partition, claimed);
                    holder.put(partition, member.memberId());
                    contested.remove(partition);
                } else if (claimed == known && !holder.get(partition).equals(member.memberId())) {
                    contested.add(partition);
                }
            }
        }
        holder.keySet().removeAll(contested);
        return new Ownership(holder, contested, newest);
    }

    /** Must the partition wait for somebody to give it up before this member may have it. */
    boolean withholds(TopicPartition partition, String from) {
        String current = holder.get(partition);
        return contested.contains(partition) || current != null && !current.equals(from);
    }
}
