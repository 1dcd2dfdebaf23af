package lagwise.broker;

import static lagwise.broker.Checks.check;
import static lagwise.broker.Checks.same;
import static lagwise.broker.Checks.text;

import java.util.Set;

import lagwise.broker.FakeTopic.PlanText;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/** When a plan is the assignment, and when it is not. Members a and b have three partitions each unless it says so. */
public final class PlanChecks {
    private static final String BEFORE = "{a={t=[0, 1, 2]}, b={t=[3, 4, 5]}}";
    private static final String PLANNED = "{a={t=[5]}, b={t=[0, 1, 2, 3, 4]}}";

    private final FakeTopic topic = new FakeTopic();
    private final FakeGroup group = new FakeGroup().topic("t", 6)
        .member("a", "t").has("a", "t", 0, 1, 2).member("b", "t").has("b", "t", 3, 4, 5);

    private static PlanText plan(long epoch) {
        return new PlanText("g", epoch).gives("a", "t", "5").gives("b", "t", "0-4");
    }

    private String assigned() {
        return text(topic.settle().assignor().assign(group, group));
    }

    public void planForExactlyTheMembersAndPartitionsIsAssigned() {
        same(assigned(), BEFORE);
        topic.publish(plan(7));
        same(assigned(), PLANNED);
        same(topic.counters.getPlannedAssignments() + " " + topic.counters.getKeptAssignments(), "1 1");
    }

    public void planIsTheAnswerAgainWhileItIsCarriedOut() {
        topic.publish(plan(7));
        GroupAssignment given = topic.settle().assignor().assign(group, group);
        group.take(given);
        same(assigned(), PLANNED);
        check(given.members().get("b").partitions().equals(group.memberAssignment("b").partitions()), "equal sets");
        check(group.memberAssignment("b").partitions().equals(given.members().get("b").partitions()), "equal sets");
    }

    public void memberThatReadsNothingIsNoReasonAgainstAPlan() {
        topic.publish(plan(7));
        group.member("ghost", "gone").member("other");
        same(assigned(), PLANNED.replace("}}", "}, ghost={}, other={}}"));
    }

    public void plannedMemberWithoutPartitionsMayHaveLeft() {
        topic.publish(plan(7).gives("ghost"));
        same(assigned(), PLANNED);
    }

    public void memberThatThePlanDoesNotKnowMakesItNotFit() {
        topic.publish(plan(7));
        group.member("c", "t").has("c", "t");
        group.has("c", "t", 2).has("a", "t", 0, 1);
        same(assigned(), "{a={t=[0, 1]}, b={t=[3, 4, 5]}, c={t=[2]}}");
        same(topic.counters.getMisfits(), 1L);
    }

    public void memberThatHasLeftMakesAPlanNotFit() {
        topic.publish(plan(7));
        group.leave("a");
        same(assigned(), "{b={t=[0, 1, 2, 3, 4, 5]}}");
    }

    public void topicWithMorePartitionsMakesAPlanNotFit() {
        topic.publish(plan(7));
        group.topic("t", 7);
        same(assigned(), "{a={t=[0, 1, 2, 6]}, b={t=[3, 4, 5]}}");
    }

    public void topicWithFewerPartitionsMakesAPlanNotFit() {
        topic.publish(plan(7));
        group.topic("t", 5);
        same(assigned(), "{a={t=[0, 1, 2]}, b={t=[3, 4]}}");
    }

    public void topicThatThePlanDoesNotKnowMakesItNotFit() {
        topic.publish(plan(7));
        group.topic("u", 1).member("a", "t", "u").member("b", "t", "u");
        same(assigned(), "{a={t=[0, 1, 2], u=[0]}, b={t=[3, 4, 5]}}");
    }

    public void topicThatNobodyReadsAnyMoreMakesAPlanNotFit() {
        topic.publish(plan(7).gives("a", "u", "0"));
        group.topic("u", 1);
        same(assigned(), BEFORE);
    }

    public void topicMadeAgainMakesAPlanNotFit() {
        topic.publish(plan(7).gives("a", "u", "0"));
        group.topic("v", 1).member("a", "t", "v").member("b", "t", "v");
        same(assigned(), "{a={t=[0, 1, 2], v=[0]}, b={t=[3, 4, 5]}}");
    }

    public void memberIsGivenNoTopicThatItDoesNotReadUnlessAnotherDoes() {
        topic.publish(plan(7).gives("a", "u", "0"));
        group.topic("u", 1).member("b", "t", "u").has("b", "u", 0);
        same(assigned(), "{a={t=[0, 1, 2]}, b={t=[3, 4, 5], u=[0]}}");
        group.member("a", "t", "u");
        same(assigned(), "{a={t=[5], u=[0]}, b={t=[0, 1, 2, 3, 4]}}");
    }

    public void planForMembersOfUnequalSubscriptionsIsAssigned() {
        group.topic("u", 2).member("a", "t", "u");
        topic.publish(plan(7).gives("a", "u", "0-1"));
        same(assigned(), "{a={t=[5], u=[0, 1]}, b={t=[0, 1, 2, 3, 4]}}");
    }

    public void plansOfManyGroupsAreFoundByTheirMembers() {
        topic.publish(plan(7)).publish(new PlanText("h", 3).gives("c", "t", "0-5").gives("d"));
        FakeGroup other = new FakeGroup().topic("t", 6).member("d", "t").has("d", "t", 0, 1, 2, 3, 4, 5).member("c", "t");
        same(assigned(), PLANNED);
        same(text(topic.assignor().assign(other, other)), "{c={t=[0, 1, 2, 3, 4, 5]}, d={}}");
    }

    public void assignmentNeverThrows() {
        topic.publish(plan(7)).settle();
        GroupAssignment given = topic.assignor().assign(group, new BrokenTopics());
        same(text(given), BEFORE);
        same(topic.counters.getFailures(), 1L);
        same(assigned(), PLANNED);
    }

    /** A description that fails, as none of Kafka's should. */
    private static final class BrokenTopics implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topicId) {
            throw new IllegalStateException("no image");
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            throw new IllegalStateException("no image");
        }
    }
}
