package lagwise.broker;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.function.Supplier;

import lagwise.broker.FakeTopic.PlanText;

import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;

/**
 * How long assignments take: one line for each case, its name and microseconds: the 50th and 99th percentile, the slowest,
 * and the 99th percentile of the thread's processor time. Arguments: members, partitions in all, topics, plans held, rounds. The first assignments of the process are
 * in it, as they are in a broker's.
 */
public final class Speed {
    private final int members;
    private final int partitions;
    private final int topics;
    private final int rounds;
    private final PlanAssignor assignor;
    private final FakeTopic control;

    private Speed(int[] sizes) {
        members = sizes[0];
        partitions = sizes[1];
        topics = sizes[2];
        rounds = sizes[4];
        control = new FakeTopic();
        control.know(names());
        for (int group = 0; group < sizes[3]; group++) {
            control.publish(plan(group)).settle();
        }
        assignor = control.assignor();
    }

    public static void main(String[] arguments) {
        int[] sizes = Arrays.stream(arguments).mapToInt(Integer::parseInt).toArray();
        Speed speed = new Speed(sizes);
        FakeGroup first = speed.group("g0-m");
        FakeGroup unknown = speed.group("nobody");
        GroupAssignment planned = speed.assignor.assign(first, first);
        FakeGroup settled = speed.group("nobody").take(KeptAssignment.of(unknown, unknown, any -> false));
        speed.measure("planned", () -> speed.assignor.assign(first, first));
        Checks.check(speed.control.counters.getPlannedAssignments() == speed.rounds + 1L, "plans are followed");
        Checks.check(planned.members().size() == speed.members, planned.members().size());
        speed.measure("kept", () -> speed.assignor.assign(settled, settled));
        speed.measure("first", () -> speed.assignor.assign(unknown, unknown));
        settled.member("newcomer", speed.names());
        speed.measure("newcomer", () -> speed.assignor.assign(settled, settled));
        settled.member("other", speed.names()[0]);
        speed.measure("unequal", () -> speed.assignor.assign(settled, settled));
        System.out.println("heap_mb " + (Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory() >> 20));
    }

    private void measure(String name, Supplier<GroupAssignment> assignment) {
        long[] took = new long[rounds];
        long[] worked = new long[rounds];
        ThreadMXBean thread = ManagementFactory.getThreadMXBean();
        for (int round = 0; round < rounds; round++) {
            long begun = System.nanoTime();
            long begunWork = thread.getCurrentThreadCpuTime();
            int size = assignment.get().members().size();
            worked[round] = thread.getCurrentThreadCpuTime() - begunWork;
            took[round] = System.nanoTime() - begun;
            Checks.check(size >= members, size);
        }
        Arrays.sort(took);
        Arrays.sort(worked);
        System.out.printf("%s %d %d %d %d%n", name, took[rounds / 2] / 1000, took[rounds * 99 / 100] / 1000,
            took[rounds - 1] / 1000, worked[rounds * 99 / 100] / 1000);
    }

    private String[] names() {
        String[] names = new String[topics];
        Arrays.setAll(names, number -> "topic-" + number);
        return names;
    }

    /** A group whose members all read all topics. */
    private FakeGroup group(String prefix) {
        FakeGroup group = new FakeGroup();
        for (String name : names()) {
            group.topic(name, partitions / topics);
        }
        for (int member = 0; member < members; member++) {
            group.member(prefix + member, names());
        }
        return group;
    }

    private PlanText plan(int group) {
        PlanText plan = new PlanText("g" + group, 7);
        int share = partitions / topics / members;
        for (int member = 0; member < members; member++) {
            String id = "g" + group + "-m" + member;
            plan.gives(id);
            int first = member * share;
            int last = member == members - 1 ? partitions / topics - 1 : first + share - 1;
            for (String name : names()) {
                if (last >= first) {
                    plan.gives(id, name, first == last ? "" + first : first + "-" + last);
                }
            }
        }
        return plan;
    }
}
