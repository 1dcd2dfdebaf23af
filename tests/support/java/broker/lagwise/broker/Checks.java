package lagwise.broker;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;

/** What the broker's assignor promises, without a broker: one line for each check, its name and "ok", among those that are logged. */
public final class Checks {
    private Checks() {
    }

    public static void main(String[] arguments) throws ReflectiveOperationException {
        for (Class<?> checks : List.of(
            PlanChecks.class, IntakeChecks.class, KeptChecks.class, LeftEmptyChecks.class, ProcessChecks.class)) {
            for (Method check : checks.getDeclaredMethods()) {
                if (Modifier.isPublic(check.getModifiers())) {
                    System.out.println("check " + check.getName() + ": " + answer(checks, check));
                }
            }
        }
        // The reader's thread is a daemon, and ends with this.
    }

    private static String answer(Class<?> checks, Method check) throws ReflectiveOperationException {
        try {
            check.invoke(checks.getDeclaredConstructor().newInstance());
            return "ok";
        } catch (InvocationTargetException error) {
            error.getCause().printStackTrace();
            return error.getCause().toString();
        }
    }

    static void check(boolean holds, Object seen) {
        if (!holds) {
            throw new AssertionError(String.valueOf(seen));
        }
    }

    static void same(Object seen, Object wanted) {
        check(wanted.equals(seen), seen + " is not " + wanted);
    }

    /** What each member has, as text: {@code {a={t=[0, 1]}, b={}}}. */
    static String text(GroupAssignment given) {
        Map<Object, String> names = List.of("t", "u", "v").stream().collect(Collectors.toMap(FakeGroup::id, name -> name));
        Map<String, Map<String, TreeSet<Integer>>> all = new TreeMap<>();
        given.members().forEach((id, member) -> {
            Map<String, TreeSet<Integer>> byTopic = new TreeMap<>();
            member.partitions().forEach((topic, numbers) -> byTopic.put(names.get(topic), new TreeSet<>(numbers)));
            all.put(id, byTopic);
        });
        return all.toString();
    }
}
