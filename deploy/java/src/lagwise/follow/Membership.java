package lagwise.follow;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import lagwise.control.ControlRecord;
import lagwise.control.Instants;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.common.TopicPartition;

/**
 * What one member remembers from rebalance to rebalance, says when it joins, and decides as leader. It has no clock and
 * knows no client; the thread that polls calls it.
 */
final class Membership {
    private static final int MOST_REJOINS = 3;
    private static final int LONGEST_WHY = 400;

    private final ControlState control;
    private final boolean isCooperative;
    private Collection<TopicPartition> claims = List.of();
    private int generation = SubscriptionData.NO_GENERATION;
    private boolean isLost;
    private long considered;
    private long awaited;
    private long applied;
    private Set<String> led = Set.of();
    private Set<String> leads = Set.of();
    private long askedEpoch;
    private final List<Integer> askedIn = new ArrayList<>();

    Membership(ControlState control, boolean isCooperative) {
        this.control = control;
        this.isCooperative = isCooperative;
    }

    /** What to join with. */
    SubscriptionData subscriptionData() {
        boolean holds = isCooperative && !isLost && !claims.isEmpty();
        return new SubscriptionData(claims, generation, control.epoch(), holds);
    }

    /** The member has lost what it had, or given it up: it still claims it, as its history, but holds it no more. */
    void lost() {
        isLost = true;
    }

    /** Epoch of a plan that some member has read and the leader has not; said to the leader once of each epoch. */
    Optional<Long> epochToAwait(GroupView group) {
        long claimed = group.newestEpoch();
        if (claimed <= control.epoch() || claimed == awaited) {
            return Optional.empty();
        }
        awaited = claimed;
        return Optional.of(claimed);
    }

    /**
     * What every member gets; asked of the leader only.
     *
     * @param nowMs time in ms since 1970, for plans that expire
     */
    Map<String, Assignment> lead(GroupView group, Leader.Fallback fallback, long nowMs, Said said) {
        ControlState.Newest newest = control.newest(nowMs);
        long epoch = newest.epoch();
        Optional<ControlRecord> plan = newest.plan();
        Optional<String> late = newest.over().flatMap(over -> whyLate(over, group, nowMs));
        Leader.Decision decision = Leader.decide(group, plan, fallback);
        String why = late.orElse(decision.why());
        said.of(decision.planEpoch(), why);
        led = Set.copyOf(group.members().keySet());
        boolean isRefused = late.isPresent() || (plan.isPresent() && decision.planEpoch().isEmpty());
        Map<String, List<TopicPartition>> placed = group.byMember(decision.step());
        Map<String, List<TopicPartition>> target = group.byMember(decision.target());
        Map<String, Assignment> answers = new HashMap<>();
        placed.forEach((id, partitions) -> {
            boolean isThere = decision.planEpoch().isPresent()
                && new HashSet<>(partitions).equals(new HashSet<>(target.get(id)));
            AssignmentData data = isRefused
                ? new AssignmentData(epoch, AssignmentData.Outcome.REFUSED, shortened(why))
                : new AssignmentData(epoch,
                    isThere ? AssignmentData.Outcome.APPLIED : AssignmentData.Outcome.SILENT, "");
            answers.put(id, new Assignment(partitions, data.encode()));
        });
        return answers;
    }

    /**
     * Why the leader refuses a plan that is over by its clock; nothing if this rebalance is not the plan's. It is the first
     * one after the generation that the plan was made for, of the plan's members: they may have rejoined for it. Without
     * an answer, each plan would cost the group a rebalance, and the job would not learn why.
     */
    private static Optional<String> whyLate(ControlRecord over, GroupView group, long nowMs) {
        boolean isJoinedFor = group.newestGeneration() == over.baseGeneration()
            && group.members().keySet().equals(over.members().keySet()) && group.newestEpoch() == over.epoch();
        return isJoinedFor
            ? Optional.of("plan " + over.epoch() + " is over by the leader's clock (" + Instants.format(nowMs)
                + ", valid until " + Instants.format(over.validUntilMs()) + ")")
            : Optional.empty();
    }

    /** Hears by which plan the leader assigned, if by one, and why. */
    interface Said {
        void of(Optional<Long> planEpoch, String why);
    }

    /** Takes in the leader's answer; gives what to acknowledge, once in a generation. */
    Optional<Ack> assigned(Assignment assignment, int newGeneration, String memberId, long nowMs) {
        AssignmentData answer = AssignmentData.decode(assignment.userData());
        considered = answer.epoch();
        claims = List.copyOf(assignment.partitions());
        generation = newGeneration;
        isLost = false;
        leads = led;
        led = Set.of();
        String kind = kind(answer);
        if (kind == null) {
            return Optional.empty();
        }
        boolean hasReason = answer.outcome() == AssignmentData.Outcome.REFUSED;
        return Optional.of(new Ack(kind, control.cluster(), control.group(), newGeneration, answer.epoch(), memberId,
            hasReason ? answer.why() : null, nowMs));
    }

    private String kind(AssignmentData answer) {
        if (answer.epoch() == 0 || control.cluster() == null) {
            return null;
        }
        return switch (answer.outcome()) {
            case SILENT -> null;
            case APPLIED -> {
                applied = answer.epoch();
                yield "applied";
            }
            case REFUSED -> answer.epoch() == applied ? "void" : "refused";
        };
    }

    /**
     * Whether the member should make the group rejoin now; asked often, it says yes once for each reason.
     *
     * <p>Every member says so of a plan that was made for its own generation, so that all join at once and none waits
     * for a heartbeat. The leader says so later too, a few times, of a plan for its members that no leader has taken
     * into account: it may have read it after the others. Nobody says so of a plan that leaves every member what it has.
     */
    Optional<ControlRecord> planToRejoinFor(long nowMs) {
        Optional<ControlRecord> plan = control.newest(nowMs).plan().filter(one -> one.epoch() > considered && mayAsk(one));
        plan.ifPresent(one -> askedIn.add(generation));
        // Older drivers publish plans that move nothing, and a rebalance for one would stop the group for nothing. Every
        // poll asks, so a plan is walked only now, once in a generation.
        return plan.filter(one -> !one.members().values().stream().allMatch(ControlRecord.Member::keepsAll));
    }

    private boolean mayAsk(ControlRecord plan) {
        if (askedEpoch != plan.epoch()) {
            askedEpoch = plan.epoch();
            askedIn.clear();
        }
        if (generation == SubscriptionData.NO_GENERATION || askedIn.contains(generation)
            || askedIn.size() >= MOST_REJOINS) {
            return false;
        }
        boolean isForMembers = generation > plan.baseGeneration() && leads.equals(plan.members().keySet());
        return isForMembers || generation == plan.baseGeneration();
    }

    private static String shortened(String why) {
        int points = why.codePointCount(0, why.length());
        return points <= LONGEST_WHY ? why : why.substring(0, why.offsetByCodePoints(0, LONGEST_WHY));
    }
}
