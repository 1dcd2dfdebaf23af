package lagwise.follow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.TopicPartition;

/**
 * Partition i of every topic to one member, so that streams can be joined (KIP-315); eager unless
 * {@value TwoProtocolAssignor#PROTOCOL} is {@code cooperative}.
 *
 * <p>What is assigned are partition numbers, up to the count of the smallest topic, evenly and with as few moves as that
 * allows. Numbers from there on have no member, as their partners are not there yet; nor has a partition of a topic that
 * the member of its number does not read. In a group it is the assignor {@code sticky-stream-join} of the Python
 * plug-ins.
 */
public class StickyStreamJoinAssignor extends TwoProtocolAssignor {
    private static final String NAME = "sticky-stream-join";

    /** The client makes it, and calls {@link #configure} next. */
    public StickyStreamJoinAssignor() {
        super(NAME, RebalanceProtocol.EAGER);
    }

    @Override
    boolean joins() {
        return true;
    }

    @Override
    Target target(GroupView group, Leader.Fallback sticky) {
        Set<String> joined = new HashSet<>();
        group.counts().forEach((topic, count) -> {
            if (count > 0 && !group.readers(topic).isEmpty()) {
                joined.add(topic);
            }
        });
        Map<TopicPartition, String> owners = new HashMap<>();
        if (joined.isEmpty()) {
            return new Target(owners, NAME);
        }
        List<String> taking = group.members().values().stream()
            .filter(member -> member.topics().stream().anyMatch(joined::contains)).map(Joined::memberId).toList();
        int smallest = joined.stream().mapToInt(group.counts()::get).min().orElseThrow();
        Map<TopicPartition, String> numbers =
            EvenSticky.assign(numbers(smallest), owners(group, smallest, Set.copyOf(taking)), taking);
        for (TopicPartition partition : group.partitions()) {
            String member = numbers.get(number(partition.partition()));
            if (member != null && group.reads(member, partition)) {
                owners.put(partition, member);
            }
        }
        return new Target(owners, NAME);
    }

    /** A number as a partition of a topic of its own. */
    private static TopicPartition number(int number) {
        return new TopicPartition(NAME, number);
    }

    private static List<TopicPartition> numbers(int count) {
        List<TopicPartition> numbers = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            numbers.add(number(number));
        }
        return numbers;
    }

    /** Owner of each number: who claims it in the newest generation, in whichever topic; nobody where claims differ. */
    private static Map<TopicPartition, String> owners(GroupView group, int count, Set<String> taking) {
        Ownership claims = group.claims();
        Map<Integer, Integer> newest = new HashMap<>();
        group.partitions().stream().filter(claims.generation()::containsKey)
            .forEach(claimed -> newest.merge(claimed.partition(), claims.generation().get(claimed), Math::max));
        Map<Integer, Set<Optional<String>>> claimants = new HashMap<>();
        for (TopicPartition partition : group.partitions()) {
            // A topic that joined later has older claims: they count for nothing.
            if (newest.containsKey(partition.partition())
                && newest.get(partition.partition()).equals(claims.generation().get(partition))) {
                claimants.computeIfAbsent(partition.partition(), any -> new HashSet<>())
                    .add(Optional.ofNullable(claims.holder().get(partition)));
            }
        }
        Map<TopicPartition, String> owners = new HashMap<>();
        claimants.forEach((number, ids) -> {
            Optional<String> only = ids.size() == 1 ? ids.iterator().next() : Optional.empty();
            only.filter(id -> number < count && taking.contains(id)).ifPresent(id -> owners.put(number(number), id));
        });
        return owners;
    }
}
