package lagwise.broker;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * The assignment where no plan fits. What is assigned stays; what nobody has goes to the members with the fewest
 * partitions; and a newcomer is given its even share, from those with the most: a member that had nothing, unless it was
 * a plan that left it so. A coordinator tells no difference between the two.
 *
 * <p>Kafka's own UniformAssignor would even out the counts of all members each time, and with that undo a plan as soon
 * as it is over, or before a restarted broker has read it. It looks at no racks either (4.0 to 4.4).
 */
final class KeptAssignment {
    private static final Comparator<Hand> FEWEST = Comparator.comparingInt(Hand::size).thenComparing(Hand::memberId);
    private static final Comparator<Hand> MOST = FEWEST.reversed();

    private final Subscriptions subscriptions;
    private final Predicate<String> isLeftEmpty;
    private final List<Hand> hands = new ArrayList<>();
    private final Map<Uuid, BitSet> held = new HashMap<>();
    private final Map<Uuid, List<Hand>> readers = new HashMap<>();

    private KeptAssignment(Subscriptions subscriptions, Predicate<String> isLeftEmpty) {
        this.subscriptions = subscriptions;
        this.isLeftEmpty = isLeftEmpty;
    }

    /** @param isLeftEmpty whether a plan has left that member without partitions, so that it is no newcomer */
    static GroupAssignment of(GroupSpec group, SubscribedTopicDescriber topics, Predicate<String> isLeftEmpty) {
        KeptAssignment assignment = new KeptAssignment(Subscriptions.of(group, topics), isLeftEmpty);
        group.memberIds().forEach(assignment::keep);
        assignment.findReaders();
        assignment.dealOut();
        assignment.shareWithNewcomers();
        Map<String, MemberAssignment> given = new HashMap<>();
        assignment.hands.forEach(hand -> given.put(hand.memberId(), hand.assigned()));
        return new GroupAssignment(given);
    }

    private void keep(String memberId) {
        Map<Uuid, Set<Integer>> before = subscriptions.group().memberAssignment(memberId).partitions();
        boolean isNew = before.isEmpty() && !isLeftEmpty.test(memberId);
        Hand hand = new Hand(memberId, subscriptions.of(memberId), isNew);
        before.forEach((topic, numbers) -> {
            int count = subscriptions.counts().getOrDefault(topic, 0);
            if (count > 0 && hand.topics().contains(topic)) {
                Set<Integer> kept = held(topic, numbers, count);
                if (!kept.isEmpty()) {
                    hand.keep(topic, kept);
                }
            }
        });
        hands.add(hand);
    }

    /** Of these partitions those that there are and nobody else has: all of them, unless Kafka is mistaken. */
    private Set<Integer> held(Uuid topic, Set<Integer> numbers, int count) {
        BitSet taken = held.computeIfAbsent(topic, any -> new BitSet(count));
        Set<Integer> wrong = new HashSet<>();
        for (int number : numbers) {
            if (number >= count || taken.get(number)) {
                wrong.add(number);
            } else {
                taken.set(number);
            }
        }
        if (wrong.isEmpty()) {
            return numbers;
        }
        Set<Integer> right = new HashSet<>(numbers);
        right.removeAll(wrong);
        return right;
    }

    private void findReaders() {
        if (subscriptions.areEqual()) {
            subscriptions.counts().keySet().forEach(topic -> readers.put(topic, hands));
            return;
        }
        for (Hand hand : hands) {
            for (Uuid topic : hand.topics()) {
                if (subscriptions.counts().containsKey(topic)) {
                    readers.computeIfAbsent(topic, any -> new ArrayList<>()).add(hand);
                }
            }
        }
    }

    private void dealOut() {
        List<Uuid> topics = new ArrayList<>(readers.keySet());
        // Topics with few readers first: those with many even out what these have made uneven.
        topics.sort(Comparator.comparingInt(topic -> readers.get(topic).size()));
        PriorityQueue<Hand> everybody = subscriptions.areEqual() ? queue(FEWEST, hands) : null;
        for (Uuid topic : topics) {
            BitSet taken = held.computeIfAbsent(topic, any -> new BitSet());
            int count = subscriptions.counts().get(topic);
            if (taken.cardinality() < count) {
                dealOut(topic, taken, count, everybody == null ? queue(FEWEST, readers.get(topic)) : everybody);
            }
        }
    }

    private static void dealOut(Uuid topic, BitSet taken, int count, PriorityQueue<Hand> fewest) {
        for (int number = taken.nextClearBit(0); number < count; number = taken.nextClearBit(number + 1)) {
            Hand hand = fewest.remove();
            hand.add(topic, number);
            fewest.add(hand);
        }
    }

    private void shareWithNewcomers() {
        Map<Boolean, List<Hand>> byNeed = hands.stream()
            .collect(Collectors.partitioningBy(hand -> hand.isNew() && hand.size() < evenShare(hand)));
        List<Hand> newcomers = byNeed.get(true);
        PriorityQueue<Hand> most = queue(MOST, byNeed.get(false));
        for (Hand newcomer : newcomers) {
            int share = evenShare(newcomer);
            List<Hand> ofOtherTopics = new ArrayList<>();
            while (newcomer.size() < share && !most.isEmpty() && most.peek().size() > newcomer.size() + 1) {
                Hand giver = most.remove();
                if (giver.giveOne(newcomer)) {
                    most.add(giver);
                } else {
                    ofOtherTopics.add(giver);
                }
            }
            most.addAll(ofOtherTopics);
        }
    }

    /** How many partitions the member would have if each topic were spread evenly over those who read it. */
    private int evenShare(Hand hand) {
        double share = 0;
        for (Uuid topic : hand.topics()) {
            if (subscriptions.counts().containsKey(topic)) {
                share += (double) subscriptions.counts().get(topic) / readers.get(topic).size();
            }
        }
        // A sum of fractions may miss a whole number by little.
        return (int) Math.floor(share + 1e-6);
    }

    private static PriorityQueue<Hand> queue(Comparator<Hand> first, List<Hand> hands) {
        PriorityQueue<Hand> queue = new PriorityQueue<>(Math.max(1, hands.size()), first);
        queue.addAll(hands);
        return queue;
    }
}
