package lagwise.follow;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import lagwise.control.ControlRecord;

import org.apache.kafka.common.TopicPartition;

/** What the leader of a group does with a plan: applies it as a whole, or leaves the group to Kafka's sticky. */
final class Leader {
    /** The strategy that hands over the partitions of one number together (KIP-315). */
    private static final String STREAM_JOIN = "sticky-stream-join";

    private Leader() {
    }

    /** Assigns where no plan does. */
    interface Fallback {
        /** Member id by partition. */
        Map<TopicPartition, String> assign(GroupView group);
    }

    /**
     * What the leader hands out.
     *
     * @param target where every partition should be in the end, member id by partition
     * @param step what may be handed out now: the target without what a cooperative member has yet to give up
     * @param planEpoch of the plan whose target it is; nothing where the fallback assigned
     * @param why one sentence for the log
     */
    record Decision(Map<TopicPartition, String> target, Map<TopicPartition, String> step, Optional<Long> planEpoch,
        String why) {
    }

    static Decision decide(GroupView group, Optional<ControlRecord> plan, Fallback fallback) {
        Optional<PlanFit> fit = plan.map(newest -> new PlanFit(newest, group));
        String problem = fit.map(one -> one.problem().orElse("")).orElse("no plan");
        if (!problem.isEmpty()) {
            Map<TopicPartition, String> target = fallback.assign(group);
            return new Decision(target, step(group, target, false), Optional.empty(), "sticky: " + problem);
        }
        Map<TopicPartition, String> target = fit.orElseThrow().target();
        boolean joins = plan.orElseThrow().strategy().equals(STREAM_JOIN);
        return new Decision(target, step(group, target, joins), plan.map(ControlRecord::epoch), "the plan fits");
    }

    /**
     * The part of a target that may be handed out now (KIP-429). What another member still reads waits until that one
     * has given it up.
     *
     * @param byNumber while one partition of a number waits, no member is given another of that number
     */
    static Map<TopicPartition, String> step(
        GroupView group, Map<TopicPartition, String> target, boolean byNumber) {
        Ownership holding = group.holding();
        Map<TopicPartition, String> step = new HashMap<>(target);
        step.entrySet().removeIf(one -> holding.withholds(one.getKey(), one.getValue()));
        if (byNumber) {
            Set<Integer> waiting = new HashSet<>();
            target.keySet().stream().filter(one -> !step.containsKey(one)).forEach(one -> waiting.add(one.partition()));
            step.entrySet().removeIf(one -> waiting.contains(one.getKey().partition())
                && !one.getValue().equals(holding.holder().get(one.getKey())));
        }
        return step;
    }
}
