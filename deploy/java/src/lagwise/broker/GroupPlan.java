package lagwise.broker;

import java.util.BitSet;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;

import lagwise.control.DamagedException;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * A plan as the broker needs it: by topic id, with every partition of each of its topics given to exactly one member.
 * Immutable but for what was said about it.
 */
final class GroupPlan {
    private final String group;
    private final long epoch;
    private final long validUntilMs;
    private final Map<String, MemberAssignment> members;
    private final Set<String> readers;
    private final Set<String> leftEmpty;
    private final Map<Uuid, Integer> counts;
    private final long bytes;
    private final AtomicBoolean hasSaidProblem = new AtomicBoolean();
    private final AtomicBoolean hasSaidApplied = new AtomicBoolean();

    private GroupPlan(Draft draft, Map<String, MemberAssignment> members, Map<Uuid, Integer> counts) {
        group = draft.group();
        epoch = draft.epoch();
        validUntilMs = draft.validUntilMs();
        leftEmpty = draft.leftEmpty();
        bytes = draft.bytes();
        this.members = members;
        readers = members.keySet().stream().filter(id -> !members.get(id).partitions().isEmpty())
            .collect(Collectors.toUnmodifiableSet());
        this.counts = counts;
    }

    /**
     * The plan of a draft.
     *
     * @param ids topic ids by name, of all topics of the plan that there are
     * @throws DamagedException if a topic has no id, or a partition of one that the plan names has not exactly one member
     */
    static GroupPlan of(Draft draft, Map<String, Uuid> ids) throws DamagedException {
        Map<String, MemberAssignment> members = new HashMap<>();
        Map<Uuid, Integer> counts = new HashMap<>();
        for (Map.Entry<String, Map<String, Set<Integer>>> member : draft.members().entrySet()) {
            Map<Uuid, Set<Integer>> target = byId(member.getValue(), ids);
            target.forEach((topic, numbers) -> counts.merge(topic, numbers.size(), Integer::sum));
            members.put(member.getKey(), new Assigned(target));
        }
        Map<Uuid, BitSet> placed = new HashMap<>();
        for (MemberAssignment member : members.values()) {
            for (Map.Entry<Uuid, Set<Integer>> topic : member.partitions().entrySet()) {
                int count = counts.get(topic.getKey());
                place(topic.getValue(), count, placed.computeIfAbsent(topic.getKey(), any -> new BitSet(count)));
            }
        }
        return new GroupPlan(draft, members, counts);
    }

    private static Map<Uuid, Set<Integer>> byId(Map<String, Set<Integer>> byName, Map<String, Uuid> ids)
        throws DamagedException {
        Map<Uuid, Set<Integer>> byId = new HashMap<>();
        for (Map.Entry<String, Set<Integer>> topic : byName.entrySet()) {
            Uuid id = ids.get(topic.getKey());
            if (id == null) {
                throw new DamagedException("there is no topic " + topic.getKey() + ", or DESCRIBE on it is missing");
            }
            byId.put(id, topic.getValue());
        }
        return byId;
    }

    /** Numbers from the count on are refused before they make the set large: one alone could take 256 MB. */
    private static void place(Set<Integer> numbers, int count, BitSet placed) throws DamagedException {
        for (int number : numbers) {
            if (number >= count) {
                throw new DamagedException("a partition before the last one of its topic has no member");
            }
            if (placed.get(number)) {
                throw new DamagedException("a partition has two members");
            }
            placed.set(number);
        }
    }

    String group() {
        return group;
    }

    long epoch() {
        return epoch;
    }

    Set<String> memberIds() {
        return members.keySet();
    }

    /** The members that it gives nothing. */
    Set<String> leftEmpty() {
        return leftEmpty;
    }

    /** Roughly what it takes of the heap. */
    long bytes() {
        return bytes;
    }

    boolean isOver(long nowMs) {
        return nowMs >= validUntilMs;
    }

    /** Whether nobody has said yet why it does not fit. */
    boolean isFirstProblem() {
        return hasSaidProblem.compareAndSet(false, true);
    }

    /** Whether nobody has said yet that it is applied. */
    boolean isFirstApplied() {
        return hasSaidApplied.compareAndSet(false, true);
    }

    /** What it gives the group that it fits. */
    GroupAssignment assignment(GroupSpec group) {
        Map<String, MemberAssignment> given = new HashMap<>();
        group.memberIds().forEach(id -> given.put(id, members.getOrDefault(id, Assigned.NOTHING)));
        return new GroupAssignment(given);
    }

    /** Why it does not fit the group, in words, or nothing if it fits. */
    Optional<String> problem(GroupSpec group, SubscribedTopicDescriber topics) {
        Collection<String> ids = group.memberIds();
        if (!ids.containsAll(readers)) {
            return Optional.of("a member that it gives partitions has left");
        }
        Subscriptions subscriptions = Subscriptions.of(group, topics);
        for (String id : ids) {
            MemberAssignment planned = members.get(id);
            if (planned == null && subscriptions.readsAnything(id)) {
                return Optional.of("member " + id + " is not in the plan");
            }
            if (planned != null && !subscriptions.of(id).containsAll(planned.partitions().keySet())) {
                return Optional.of("member " + id + " does not subscribe to a topic that it is given");
            }
        }
        return subscriptions.counts().equals(counts) ? Optional.empty()
            : Optional.of("the topics that are read, or their numbers of partitions, are not those of the plan");
    }
}
