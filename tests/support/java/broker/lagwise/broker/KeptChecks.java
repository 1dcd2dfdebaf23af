package lagwise.broker;

import static lagwise.broker.Checks.check;
import static lagwise.broker.Checks.same;
import static lagwise.broker.Checks.text;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/** The assignment where there is no plan. */
public final class KeptChecks {
    private static final int GROUPS = 300;

    private final FakeGroup group = new FakeGroup().topic("t", 6);

    private String kept() {
        return text(KeptAssignment.of(group, group, any -> false));
    }

    public void whatIsAssignedStaysHoweverUneven() {
        group.member("a", "t").has("a", "t", 5).member("b", "t").has("b", "t", 0, 1, 2, 3, 4);
        same(kept(), "{a={t=[5]}, b={t=[0, 1, 2, 3, 4]}}");
        group.member("ghost", "gone");
        same(kept(), "{a={t=[5]}, b={t=[0, 1, 2, 3, 4]}, ghost={}}");
    }

    public void whatNobodyHasGoesToTheFewest() {
        group.member("a", "t").has("a", "t", 5).member("b", "t").has("b", "t", 0, 1, 2);
        same(kept(), "{a={t=[3, 4, 5]}, b={t=[0, 1, 2]}}");
    }

    public void newcomerIsGivenItsEvenShareFromThoseWithTheMost() {
        group.member("a", "t").has("a", "t", 5).member("b", "t").has("b", "t", 0, 1, 2, 3, 4).member("c", "t");
        GroupAssignment given = KeptAssignment.of(group, group, any -> false);
        same(sizes(given).toString(), "{a=1, b=3, c=2}");
        same(moved(group, given), 2);
    }

    public void newcomersOfAFullGroupStayWithoutAPartition() {
        group.topic("t", 2).member("a", "t").has("a", "t", 0).member("b", "t").has("b", "t", 1).member("c", "t").member("d", "t");
        same(kept(), "{a={t=[0]}, b={t=[1]}, c={}, d={}}");
    }

    public void whatIsGoneOrNoLongerReadIsGivenUp() {
        group.topic("u", 1).member("a", "t").has("a", "t", 0, 1, 2).has("a", "u", 0).has("a", "v", 0)
            .member("b", "t", "u").has("b", "t", 3, 4, 5, 6);
        same(kept(), "{a={t=[0, 1, 2]}, b={t=[3, 4, 5], u=[0]}}");
    }

    public void groupWithoutTopicsHasNothing() {
        same(text(KeptAssignment.of(new FakeGroup().member("a", "gone"), new FakeGroup(), any -> false)), "{a={}}");
        same(text(KeptAssignment.of(new FakeGroup(), new FakeGroup(), any -> false)), "{}");
    }

    public void firstAssignmentIsAsEvenAsThatOfKafkasUniformAssignor() {
        Random random = new Random(13);
        for (int number = 0; number < GROUPS; number++) {
            FakeGroup one = random(random, number % 2 == 0);
            List<Integer> ours = new ArrayList<>(sizes(KeptAssignment.of(one, one, any -> false)).values());
            List<Integer> kafkas = new ArrayList<>(sizes(new UniformAssignor().assign(one, one)).values());
            ours.sort(null);
            kafkas.sort(null);
            if (one.subscriptionType().toString().equals("Homogeneous")) {
                same(ours, kafkas);
            } else {
                // Kafka's goes on until no move makes it more even; here each topic is dealt out once.
                check(squares(ours) <= squares(kafkas) * 1.25 + 4, ours + " and Kafka's " + kafkas);
            }
        }
    }

    public void membersThatComeAndGoLeaveEachPartitionToOneOfThem() {
        Random random = new Random(14);
        for (int number = 0; number < GROUPS; number++) {
            FakeGroup one = random(random, number % 2 == 0);
            for (int step = 0; step < 10; step++) {
                GroupAssignment given = KeptAssignment.of(one, one, any -> false);
                checkWhole(one, given);
                one.take(given);
                int before = moved(one, KeptAssignment.of(one, one, any -> false));
                // Members that had nothing are still new, and so little the second time that nothing moves.
                same(before, 0);
                change(one, random, number % 2 == 0);
            }
        }
    }

    private static void change(FakeGroup one, Random random, boolean areEqual) {
        List<String> ids = new ArrayList<>(one.memberIds());
        switch (random.nextInt(3)) {
            case 0 -> one.member("n" + random.nextInt(1000), topics(random, areEqual));
            case 1 -> one.topic("t", one.numPartitions(FakeGroup.id("t")) + random.nextInt(4));
            default -> {
                if (ids.size() > 1) {
                    one.leave(ids.get(random.nextInt(ids.size())));
                }
            }
        }
    }

    private static FakeGroup random(Random random, boolean areEqual) {
        FakeGroup one = new FakeGroup().topic("t", 1 + random.nextInt(20)).topic("u", 1 + random.nextInt(20)).topic("v", 5);
        int members = 1 + random.nextInt(8);
        for (int member = 0; member < members; member++) {
            one.member("m" + member, topics(random, areEqual));
        }
        return one;
    }

    private static String[] topics(Random random, boolean areEqual) {
        List<String> topics = new ArrayList<>(List.of("t", "u"));
        if (!areEqual) {
            topics.add("v");
            topics.removeIf(topic -> random.nextInt(3) == 0);
        }
        return topics.isEmpty() ? new String[] {"t"} : topics.toArray(String[]::new);
    }

    private static void checkWhole(FakeGroup one, GroupAssignment given) {
        Map<Uuid, Set<Integer>> placed = new HashMap<>();
        same(given.members().keySet(), new HashSet<>(one.memberIds()));
        given.members().forEach((id, member) -> member.partitions().forEach((topic, numbers) -> {
            check(one.memberSubscription(id).subscribedTopicIds().contains(topic), id);
            check(!numbers.isEmpty(), "a topic without partitions is not in it");
            numbers.forEach(number ->
                check(placed.computeIfAbsent(topic, any -> new HashSet<>()).add(number), "two have " + number));
        }));
        one.counts().forEach((topic, count) ->
            same(placed.getOrDefault(topic, Set.of()).size(), one.readers(topic) == 0 ? 0 : count));
    }

    private static Map<String, Integer> sizes(GroupAssignment given) {
        Map<String, Integer> sizes = new TreeMap<>();
        given.members().forEach((id, member) -> sizes.put(id, size(member)));
        return sizes;
    }

    private static int size(MemberAssignment member) {
        return member.partitions().values().stream().mapToInt(Set::size).sum();
    }

    private static long squares(List<Integer> sizes) {
        return sizes.stream().mapToLong(size -> (long) size * size).sum();
    }

    /** Partitions that somebody has had and another one is given. */
    private static int moved(FakeGroup one, GroupAssignment given) {
        int moved = 0;
        for (String id : one.memberIds()) {
            for (Map.Entry<Uuid, Set<Integer>> topic : one.memberAssignment(id).partitions().entrySet()) {
                Set<Integer> lost = new HashSet<>(topic.getValue());
                lost.removeAll(given.members().get(id).partitions().getOrDefault(topic.getKey(), Set.of()));
                moved += lost.size();
            }
        }
        return moved;
    }
}
