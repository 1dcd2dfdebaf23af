package lagwise.broker;

import static lagwise.broker.Checks.check;
import static lagwise.broker.Checks.same;
import static lagwise.broker.Checks.text;

import java.util.List;
import java.util.Optional;

import lagwise.broker.FakeTopic.PlanText;

import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;

/** Members that a plan has left without partitions are no newcomers. Plan 7 gives a nothing and b all six, and was applied. */
public final class LeftEmptyChecks {
    private static final long AFTER_2099 = 4_100_000_000_000L;
    private static final String PLANNED = "{a={}, b={t=[0, 1, 2, 3, 4, 5]}}";

    private FakeTopic topic = new FakeTopic().publish(plan(7));
    private final FakeGroup group = new FakeGroup().topic("t", 6)
        .member("a", "t").has("a", "t", 0, 1, 2).member("b", "t").has("b", "t", 3, 4, 5);

    public LeftEmptyChecks() {
        same(assigned(), PLANNED);
    }

    private static PlanText plan(long epoch) {
        return new PlanText("g", epoch).gives("a").gives("b", "t", "0-5").with("valid_until", "\"2099-01-31T12:00:00.000Z\"");
    }

    /** The group goes on with what it is given. */
    private String assigned() {
        GroupAssignment given = topic.settle().assignor().assign(group, group);
        group.take(given);
        return text(given);
    }

    public void endOfAPlanMovesNothing() {
        topic.plans.dropOver(AFTER_2099);
        same(topic.plans.size(), 0);
        same(assigned(), PLANNED);
    }

    public void brokerThatStartsAgainMovesNothingForAPlanThatIsOver() {
        topic = new FakeTopic().publish(plan(7).with("valid_until", "\"2026-01-31T12:00:00.000Z\""));
        same(assigned(), PLANNED);
        same(topic.counters.getPlannedAssignments(), 0L);
    }

    public void planThatIsTakenBackOrFollowedByOneThatNobodyFollowsMovesNothing() {
        topic.publish(plan(8)).publish(plan(9).with("dry_run", "true"));
        same(assigned(), PLANNED);
        topic.withdraw("g", Optional.empty());
        same(assigned(), PLANNED);
        topic.publish(new PlanText("g", 10).gives("a", "gone", "0"));
        same(assigned(), PLANNED);
        same(topic.counters.getPlannedAssignments(), 1L);
    }

    public void newcomerIsGivenItsShareAndTheOtherOneNothing() {
        group.member("c", "t");
        same(assigned(), "{a={}, b={t=[2, 3, 4, 5]}, c={t=[0, 1]}}");
    }

    public void whatNobodyHasGoesToThemFirst() {
        topic.plans.dropOver(AFTER_2099);
        group.topic("t", 8);
        same(assigned(), "{a={t=[6, 7]}, b={t=[0, 1, 2, 3, 4, 5]}}");
    }

    public void newerPlanDecidesWhoTheyAre() {
        topic.publish(new PlanText("g", 8).gives("a", "t", "0-5").gives("b")).settle();
        check(!topic.plans.isLeftEmpty("a") && topic.plans.isLeftEmpty("b"), "b alone");
    }

    public void theyAreForgottenWithTheirGroup() {
        Plans few = new Plans(2, 1 << 20);
        topic = new FakeTopic(few).publish(plan(7)).settle();
        check(few.isLeftEmpty("a"), "a");
        for (String other : List.of("h", "i")) {
            topic.publish(new PlanText(other, 7).gives("m" + other, "t", "0").gives("none" + other)).settle();
        }
        check(!few.isLeftEmpty("a") && few.isLeftEmpty("noneh"), "the newest");
    }
}
