package lagwise.broker;

import static lagwise.broker.Checks.check;
import static lagwise.broker.Checks.same;
import static lagwise.broker.Checks.text;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

import lagwise.broker.FakeTopic.PlanText;
import lagwise.control.ControlRecord;

/** What the records of the control topic leave behind. Members a and b have a partition each. */
public final class IntakeChecks {
    private static final String KEPT = "{a={t=[0]}, b={t=[1]}}";
    private static final String PLANNED = "{a={}, b={t=[0, 1]}}";
    private static final String OTHER_PLAN = "{a={t=[0, 1]}, b={}}";

    private FakeTopic topic = new FakeTopic();
    private final FakeGroup group = new FakeGroup().topic("t", 2).member("a", "t").has("a", "t", 0).member("b", "t").has("b", "t", 1);

    private static PlanText plan(long epoch) {
        return new PlanText("g", epoch).gives("a").gives("b", "t", "0-1");
    }

    private static PlanText otherPlan(long epoch) {
        return new PlanText("g", epoch).gives("b").gives("a", "t", "0-1");
    }

    private String assigned() {
        return text(topic.settle().assignor().assign(group, group));
    }

    public void planOfALargerEpochReplacesWhateverTheOrder() {
        topic.publish(plan(7)).publish(otherPlan(8)).publish(plan(6));
        same(assigned(), OTHER_PLAN);
        topic.publish(plan(8)).publish(plan(5));
        same(assigned(), OTHER_PLAN);
        topic.publish(plan(9));
        same(assigned(), PLANNED);
    }

    public void newerPlanThatIsNotToBeFollowedTakesTheOneBeforeAway() {
        for (PlanText newer : List.of(
            otherPlan(8).with("dry_run", "true"), otherPlan(8).with("valid_until", "\"2026-01-31T12:00:00.000Z\""),
            otherPlan(8).with("group_protocol", null), otherPlan(8).with("group_protocol", "\"classic\""),
            otherPlan(8).with("group_protocol", "\"share\""))) {
            topic = new FakeTopic();
            topic.publish(plan(7));
            same(assigned(), PLANNED);
            topic.publish(newer);
            same(assigned(), KEPT);
            topic = new FakeTopic();
            topic.publish(plan(7)).publish(newer);
            same(assigned(), KEPT);
        }
        same(topic.counters.getIgnoredRecords(), 0L);
    }

    public void withdrawalTakesThePlanBackUnlessItIsOfAnOlderOne() {
        for (boolean isSettled : new boolean[] {true, false}) {
            topic = new FakeTopic().publish(plan(7));
            if (isSettled) {
                topic.settle();
            }
            topic.withdraw("g", Optional.of(6L)).withdraw("h", Optional.empty());
            same(assigned(), PLANNED);
            topic.publish(plan(8));
            topic.withdraw("g", Optional.of(8L));
            same(assigned(), KEPT);
            topic.publish(plan(8));
            same(assigned(), KEPT);
            topic.publish(plan(9)).withdraw("g", Optional.empty());
            same(assigned(), KEPT);
            topic.publish(plan(10));
            same(assigned(), PLANNED);
        }
    }

    public void recordsOfOtherClustersAndOfTheDriverItselfAreNothing() {
        topic.publish(ControlRecord.encodeKey("elsewhere", "g"), plan(7).with("cluster", "\"elsewhere\"").toString(), Optional.empty());
        topic.publish(ControlRecord.encodeKey("local", ""), "{\"schema\":1,\"publisher\":{}}", Optional.empty());
        same(assigned(), KEPT);
        same(topic.counters.getIgnoredRecords(), 0L);
    }

    public void recordThatIsDamagedOrOfANewerFormatIsCountedAndNothingElse() {
        topic.publish(plan(7));
        topic.publish(ControlRecord.encodeKey("local", "g"), "{\"schema\":1,", Optional.empty());
        topic.publish(null, plan(8).toString(), Optional.empty());
        topic.publish("k".getBytes(StandardCharsets.UTF_8), plan(8).toString(), Optional.empty());
        topic.publish(ControlRecord.encodeKey("local", "h"), otherPlan(8).toString(), Optional.empty());
        topic.publish(otherPlan(8).with("schema", "2").with("epoch", "{\"of\":\"another kind\"}"));
        topic.publish(otherPlan(8).with("members", "{\"a\":{}}"));
        topic.publish(new PlanText("g", 8).gives("a", "t", "0-399999,500000"));
        topic.publish(otherPlan(8).with("strategy", "\"" + "x".repeat(2 << 20) + "\""));
        same(assigned(), PLANNED);
        same(topic.counters.getIgnoredRecords(), 8L);
    }

    public void planWhosePartitionsHaveNotOneMemberEachIsNoneAndTakesTheOneBeforeAway() {
        for (PlanText broken : List.of(
            new PlanText("g", 8).gives("a", "t", "0-1").gives("b", "t", "1"), new PlanText("g", 8).gives("a", "t", "1").gives("b"),
            new PlanText("g", 8).gives("a", "t", "0-1").gives("b", "unknown", "0"))) {
            topic = new FakeTopic().publish(plan(7)).settle();
            topic.publish(broken);
            same(assigned(), KEPT);
            same(topic.counters.getIgnoredRecords(), 1L);
        }
    }

    public void planThatIsOverIsNotFollowedAndGoes() {
        topic.publish(plan(7).with("valid_until", "\"2099-01-31T12:00:00.000Z\"")).settle();
        same(topic.plans.size(), 1);
        topic.plans.dropOver(FakeTopic.NOW_MS);
        same(assigned(), PLANNED);
        topic.plans.dropOver(4_100_000_000_000L);
        same(topic.plans.size(), 0);
        same(assigned(), KEPT);
        topic.publish(plan(7));
        same(assigned(), KEPT);
    }

    public void heapForPlansIsBounded() {
        Plans few = new Plans(20_000, 3000);
        topic = new FakeTopic(few);
        topic.publish(plan(7)).publish(new PlanText("big", 1).gives("c", "t", "0-1999")).settle();
        same(few.size(), 1);
        same(assigned(), PLANNED);
        same(topic.counters.getIgnoredRecords(), 1L);
        // What was let go makes room again, a thousand times.
        for (long epoch = 8; epoch < 1008; epoch++) {
            topic.publish(epoch % 2 == 0 ? otherPlan(epoch) : plan(epoch)).settle();
            check(few.find(List.of("a")).orElseThrow().epoch() == epoch, epoch);
            if (epoch % 10 == 0) {
                topic.withdraw("g", Optional.of(epoch)).settle();
                check(few.find(List.of("a", "b")).isEmpty(), epoch);
            }
        }
        same(topic.counters.getIgnoredRecords(), 1L);
    }

    public void numberOfGroupsIsBounded() {
        Plans few = new Plans(3, 1 << 20);
        topic = new FakeTopic(few);
        for (int number = 0; number < 5; number++) {
            topic.publish(new PlanText("g" + number, 7).gives("m" + number, "t", "0")).settle();
        }
        same(few.size(), 3);
        check(few.find(List.of("m0", "m1")).isEmpty() && few.find(List.of("m4")).isPresent(), "the newest");
    }

    public void smallRecordsThatAskForManyPartitionsDoNotFillTheHeap() {
        for (int number = 0; number < 50; number++) {
            topic.publish(new PlanText("g" + number, 7).gives("m" + number, "t", "0-399999"));
        }
        topic.settle();
        check(topic.plans.size() > 20 && topic.plans.size() < 50, topic.plans.size());
        same(topic.counters.getIgnoredRecords(), 50L - topic.plans.size());
    }

    public void partitionOfAHugeNumberIsNoPlanAndTakesNoHeap() {
        for (String partitions : List.of("2147483647", "0,2147483647", "2147483646-2147483647")) {
            topic = new FakeTopic().publish(plan(7)).settle();
            topic.publish(new PlanText("g", 8).gives("a", "t", "0-1").gives("b", "u", partitions));
            same(assigned(), KEPT);
            same(topic.counters.getIgnoredRecords(), 1L);
        }
    }

    public void keyLongerThanAnyGroupsNameIsDamaged() {
        topic.publish(new PlanText("x".repeat(2000), 7).gives("a", "t", "0-1"));
        topic.withdraw("x".repeat(2000), Optional.of(7L)).settle();
        same(topic.plans.size(), 0);
        same(topic.counters.getIgnoredRecords(), 2L);
    }
}
