package lagwise.follow;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

import lagwise.control.DamagedException;
import lagwise.control.Fields;
import lagwise.control.Json;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.TopicPartition;

/**
 * What a strategy's assignor answers, asked over pipes: a case per line in, one line out. Bytes are hex, partitions are
 * ranges by topic; members are those of {@link Replay}, lags are in order of the partitions of a topic.
 *
 *   {"strategy":"lag-aware","cooperative":false,"counts":{"t":"0-1"},"lags":{"t":"5,7"},"members":{…},
 *    "assigned":{"partitions":{"t":"0"},"user_data":"…","generation":7}}
 *   {"placed":{"m":{"t":[0]}},"user_data":{"m":"…"},"joins":"…"}
 */
public final class Strategies {
    private Strategies() {
    }

    public static void main(String[] arguments) throws IOException, DamagedException {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            answers.println(answer(Json.parse(line.getBytes(StandardCharsets.UTF_8))));
        }
    }

    @SuppressWarnings("removal")  // of the constructor, in 4.2
    private static String answer(Fields one) throws DamagedException {
        StrategyAssignor assignor = assignor(one);
        Map<String, Integer> counts = new TreeMap<>();
        Replay.partitions(one.fields("counts")).forEach(place -> counts.merge(place.topic(), 1, Integer::sum));
        Map<String, Subscription> members = new HashMap<>();
        for (String id : one.fields("members").names()) {
            members.put(id, Replay.subscription(one.fields("members").fields(id)));
        }
        Map<String, Assignment> placed =
            assignor.assign(Replay.cluster(counts), new GroupSubscription(members)).groupAssignment();
        Fields assigned = one.fields("assigned");
        byte[] userData = Replay.bytes(assigned.nullableText("user_data"));
        assignor.onAssignment(
            new Assignment(Replay.partitions(assigned.fields("partitions")),
                userData == null ? null : ByteBuffer.wrap(userData)),
            new ConsumerGroupMetadata("g", (int) assigned.integer("generation", 0), "m", Optional.empty()));
        return "{\"placed\":" + Replay.object(placed, assignment -> Replay.byTopic(assignment.partitions()))
            + ",\"user_data\":" + Replay.object(placed, assignment -> Replay.hex(assignment.userData()))
            + ",\"joins\":" + Replay.hex(assignor.subscriptionUserData(Set.of("t"))) + "}";
    }

    private static StrategyAssignor assignor(Fields one) throws DamagedException {
        Map<TopicPartition, Long> lags = new HashMap<>();
        for (String topic : one.fields("lags").names()) {
            String[] inOrder = one.fields("lags").text(topic).split(",");
            for (int number = 0; number < inOrder.length; number++) {
                lags.put(new TopicPartition(topic, number), Long.parseLong(inOrder[number]));
            }
        }
        switch (one.text("strategy")) {
            case "lag-aware":
                return new LagAwareAssignor(partitions -> lags);
            case "constrained-cooperative-sticky":
                return with(new ConstrainedCooperativeStickyAssignor(), one);
            case "sticky-stream-join":
                return with(new StickyStreamJoinAssignor(), one);
            default:
                throw new DamagedException("no such strategy");
        }
    }

    private static StrategyAssignor with(TwoProtocolAssignor assignor, Fields one) throws DamagedException {
        assignor.configure(Map.of(TwoProtocolAssignor.PROTOCOL, one.bool("cooperative") ? "cooperative" : "eager"));
        return assignor;
    }
}
