package lagwise.broker;

import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The newest plan of each group, found by the members that it is for: a broker tells an assignor no group's name. Clients
 * choose member ids, so the job plans no group that has one in common with another. One thread writes, any number look
 * up without a lock.
 *
 * <p>It is bounded: a plan goes when a newer one comes, when it is withdrawn and when it is over, and of a group without
 * one only its epoch stays, and the members that its newest plan left empty.
 */
final class Plans {
    private static final int ID_BYTES = 150;

    private final int mostGroups;
    private final long mostBytes;
    private final Map<String, Held> groups = new LinkedHashMap<>();
    private final Map<String, GroupPlan> byMember = new ConcurrentHashMap<>();
    private final Map<String, String> groupOfLeftEmpty = new ConcurrentHashMap<>();
    private long bytes;

    Plans() {
        this(20_000, 64L << 20);
    }

    Plans(int mostGroups, long mostBytes) {
        this.mostGroups = mostGroups;
        this.mostBytes = mostBytes;
    }

    /**
     * Largest epoch seen of a group, and the plan that goes with it, unless there is none to follow.
     *
     * @param leftEmpty members to which the newest plan that was to be followed gives nothing, even if it is over
     */
    private record Held(long epoch, Optional<GroupPlan> plan, Set<String> leftEmpty) {
    }

    /** The plan of the group with these members, if there is one for any of them. */
    Optional<GroupPlan> find(Collection<String> memberIds) {
        return memberIds.stream().map(byMember::get).filter(plan -> plan != null).findFirst();
    }

    /** Whether the newest plan of its group, over or not, gives the member nothing. */
    boolean isLeftEmpty(String memberId) {
        return groupOfLeftEmpty.containsKey(memberId);
    }

    /** Whether the epoch is larger than all that were seen of the group. */
    synchronized boolean isNew(String group, long epoch) {
        Held held = groups.get(group);
        return held == null || epoch > held.epoch();
    }

    /** Puts a plan in the place of the one before it; false if it would take too much of the broker's heap. */
    synchronized boolean put(GroupPlan plan) {
        remember(plan.group(), plan.epoch(), plan.leftEmpty());
        if (bytes + plan.bytes() > mostBytes) {
            return false;
        }
        groups.put(plan.group(), new Held(plan.epoch(), Optional.of(plan), groups.get(plan.group()).leftEmpty()));
        bytes += plan.bytes();
        plan.memberIds().forEach(id -> byMember.put(id, plan));
        return true;
    }

    /**
     * Notes that the group's plan of this epoch is none to follow any more, but left these members empty; those of the
     * plan before it stay noted where there is no room.
     */
    synchronized void remember(String group, long epoch, Set<String> leftEmpty) {
        supersede(group, epoch);
        Set<String> before = groups.get(group).leftEmpty();
        long more = bytes(leftEmpty) - bytes(before);
        if (bytes + more <= mostBytes) {
            groups.put(group, new Held(epoch, Optional.empty(), leftEmpty));
            leftEmpty.forEach(id -> groupOfLeftEmpty.put(id, group));
            before.stream().filter(id -> !leftEmpty.contains(id)).forEach(id -> groupOfLeftEmpty.remove(id, group));
            bytes += more;
        }
    }

    /** Notes that the group's plan of this epoch is none to follow. */
    synchronized void supersede(String group, long epoch) {
        Held held = groups.remove(group);
        if (held != null) {
            held.plan().ifPresent(this::forget);
        }
        groups.put(group, new Held(epoch, Optional.empty(), held == null ? Set.of() : held.leftEmpty()));
        if (groups.size() > mostGroups) {
            Iterator<Map.Entry<String, Held>> all = groups.entrySet().iterator();
            Map.Entry<String, Held> eldest = all.next();
            eldest.getValue().plan().ifPresent(this::forget);
            eldest.getValue().leftEmpty().forEach(id -> groupOfLeftEmpty.remove(id, eldest.getKey()));
            bytes -= bytes(eldest.getValue().leftEmpty());
            all.remove();
        }
    }

    /** Takes the plan back unless it is newer; without an epoch always, as to follow nothing is always safe. */
    synchronized void withdraw(String group, Optional<Long> epoch) {
        long seen = groups.containsKey(group) ? groups.get(group).epoch() : 0;
        if (epoch.isEmpty() || epoch.get() >= seen) {
            supersede(group, Math.max(seen, epoch.orElse(0L)));
        }
    }

    /** Lets go of the plans that are over. */
    synchronized void dropOver(long nowMs) {
        groups.replaceAll((group, held) -> {
            if (held.plan().isEmpty() || !held.plan().get().isOver(nowMs)) {
                return held;
            }
            forget(held.plan().get());
            return new Held(held.epoch(), Optional.empty(), held.leftEmpty());
        });
    }

    /** How many plans there are to follow. */
    synchronized int size() {
        return (int) groups.values().stream().filter(held -> held.plan().isPresent()).count();
    }

    private static long bytes(Set<String> ids) {
        return ids.stream().mapToLong(id -> ID_BYTES + 2L * id.length()).sum();
    }

    private void forget(GroupPlan plan) {
        bytes -= plan.bytes();
        plan.memberIds().forEach(id -> byMember.remove(id, plan));
    }
}
