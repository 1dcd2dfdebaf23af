package lagwise.follow;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;

import lagwise.control.ControlRecord;

import org.apache.kafka.common.TopicPartition;

/**
 * Whether a plan is for the group as it is: the same members; every partition with exactly one place; a claim of its
 * generation or a newer one; and every partition, as far as it is claimed, with its owner in the base or in the
 * target, so that it goes on to fit while a cooperative hand-over is half done.
 */
final class PlanFit {
    /** Reasons of a stream join (KIP-315) for which a plan may leave out a partition that somebody reads. */
    private static final Set<String> REASONS = Set.of(
        "the smallest topic of the join has no partition of this number",
        "the member of this partition number does not subscribe to the topic");

    private final ControlRecord plan;
    private final GroupView group;
    private final Map<TopicPartition, String> target;

    PlanFit(ControlRecord plan, GroupView group) {
        this.plan = plan;
        this.group = group;
        this.target = owners(ControlRecord.Member::target);
    }

    /** Member id by partition. */
    Map<TopicPartition, String> target() {
        return target;
    }

    /** Why the plan does not fit, in words, or nothing if it does. */
    Optional<String> problem() {
        String name = "plan " + plan.epoch();
        Set<String> strangers = new HashSet<>(plan.members().keySet());
        group.members().keySet().stream().filter(id -> !strangers.remove(id)).toList().forEach(strangers::add);
        if (!strangers.isEmpty()) {
            return Optional.of(name + " is for other members, " + strangers.size() + " differ");
        }
        if (group.newestGeneration() < plan.baseGeneration()) {
            return Optional.of(name + " is of generation " + plan.baseGeneration() + ", no member knows one after "
                + group.newestGeneration());
        }
        if (!plan.members().values().stream().allMatch(member -> member.target().stream().allMatch(group::has))) {
            return Optional.of(name + " places partitions that are not there");
        }
        return brokenRule().map(broken -> name + " " + broken);
    }

    private Optional<String> brokenRule() {
        Ownership claims = group.claims();
        Map<TopicPartition, String> base = owners(ControlRecord.Member::base);
        Map<TopicPartition, Integer> places = places();
        Set<String> read = group.readTopics();
        List<TopicPartition> partitions = group.partitions();
        return first(partitions, "does not give exactly one place to",
                p -> read.contains(p.topic()) && places.getOrDefault(p, 0) != 1)
            .or(() -> first(partitions, "gives to a member that does not read it",
                p -> target.containsKey(p) && !group.reads(target.get(p), p)))
            .or(() -> first(partitions, "meets two claims of one generation on", claims.contested()::contains))
            .or(() -> first(partitions, "is neither from nor for the owner of", p -> {
                String holder = claims.holder().get(p);
                return holder != null && !holder.equals(base.get(p)) && !holder.equals(target.get(p));
            }));
    }

    private static Optional<String> first(
        List<TopicPartition> partitions, String words, Predicate<TopicPartition> isBroken) {
        return partitions.stream().filter(isBroken).findFirst().map(partition -> words + " " + partition);
    }

    /** How many places the plan has for each partition; to leave one out for a known reason is one. */
    private Map<TopicPartition, Integer> places() {
        Map<TopicPartition, Boolean> leftOut = new HashMap<>();
        plan.unassigned().forEach((reason, partitions) ->
            partitions.forEach(partition -> leftOut.put(partition, REASONS.contains(reason))));
        Map<TopicPartition, Integer> places = new HashMap<>();
        leftOut.forEach((partition, isKnown) -> places.put(partition, isKnown ? 1 : 0));
        plan.members().values().forEach(member ->
            member.target().forEach(partition -> places.merge(partition, 1, Integer::sum)));
        return places;
    }

    private Map<TopicPartition, String> owners(Function<ControlRecord.Member, List<TopicPartition>> which) {
        Map<TopicPartition, String> owners = new HashMap<>();
        for (String id : group.members().keySet()) {
            ControlRecord.Member member = plan.members().get(id);
            if (member != null) {
                which.apply(member).forEach(partition -> owners.put(partition, id));
            }
        }
        return owners;
    }
}
