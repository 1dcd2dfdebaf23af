package lagwise.broker;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

import lagwise.control.ControlRecord;

import org.apache.kafka.common.TopicPartition;

/**
 * A plan that waits for the ids of its topics, without all that an assignor does not need: a record of 500 bytes can
 * ask for 400,000 partitions, and many records come at once.
 *
 * @param validUntilMs nobody follows it from then on, in ms since 1970
 * @param members what each is given: numbers by topic
 * @param bytes roughly what it takes of the heap, as a {@link GroupPlan} too
 */
record Draft(
    String group, long epoch, long validUntilMs, Map<String, Map<String, Set<Integer>>> members, long bytes) {

    private static final int MEMBER_BYTES = 300;
    private static final int TOPIC_BYTES = 120;

    static Draft of(ControlRecord record) {
        Map<String, Map<String, Set<Integer>>> members = new HashMap<>();
        long bytes = 0;
        for (Map.Entry<String, ControlRecord.Member> member : record.members().entrySet()) {
            Map<String, Set<Integer>> given = byTopic(member.getValue().target());
            bytes += MEMBER_BYTES + 2L * member.getKey().length();
            for (Map.Entry<String, Set<Integer>> topic : given.entrySet()) {
                bytes += TOPIC_BYTES + 2L * topic.getKey().length() + (long) Integer.BYTES * topic.getValue().size();
            }
            members.put(member.getKey(), given);
        }
        return new Draft(record.group(), record.epoch(), record.validUntilMs(), members, bytes);
    }

    private static Map<String, Set<Integer>> byTopic(List<TopicPartition> target) {
        return target.stream().collect(Collectors.groupingBy(TopicPartition::topic, Collectors.mapping(
            TopicPartition::partition, Collectors.collectingAndThen(Collectors.toList(), PartitionNumbers::new))));
    }

    /** The members that it gives nothing. */
    Set<String> leftEmpty() {
        return members.keySet().stream().filter(id -> members.get(id).isEmpty()).collect(Collectors.toUnmodifiableSet());
    }

    /** The topics of which it gives partitions. */
    Set<String> topics() {
        return members.values().stream().flatMap(given -> given.keySet().stream()).collect(Collectors.toSet());
    }
}
