package lagwise.follow;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import lagwise.control.DamagedException;
import lagwise.control.Fields;
import lagwise.control.Json;
import lagwise.control.Ranges;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * What one member remembers and decides, asked over pipes: a life of it per line in, one line of answers out. Bytes are
 * hex, partitions are ranges by topic.
 *
 *   {"cluster":"…","group":"…","cooperative":true,"events":[
 *     {"do":"feed","key":"…","value":null,"headers":[{"name":"epoch","value":"3137"}]},
 *     {"do":"lead","now":5,"counts":{"t":"0-2"},"members":{"m":{"instance":null,"topics":{"t":""},"user_data":"…",
 *      "owned":{"t":"0"},"generation":-1}}},
 *     {"do":"assigned","partitions":{"t":"0"},"user_data":"…","generation":7,"member":"m","now":5},
 *     {"do":"rejoin","now":5}, {"do":"lost"}, {"do":"join"}]}
 *   ["NEWER", {"awaits":null,"epoch":17,"why":"…","placed":{"m":{"t":[0]}},"user_data":{"m":"…"}}, null, false, null, "…"]
 */
public final class Replay {
    private static final HexFormat HEX = HexFormat.of();

    private final ControlState control;
    private final Membership membership;

    private Replay(Fields life) throws DamagedException {
        control = new ControlState(life.text("cluster"), life.text("group"));
        membership = new Membership(control, life.bool("cooperative"));
    }

    public static void main(String[] arguments) throws IOException, DamagedException {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader lives = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lives.readLine(); line != null; line = lives.readLine()) {
            Fields life = Json.parse(line.getBytes(StandardCharsets.UTF_8));
            Replay replay = new Replay(life);
            List<String> said = new ArrayList<>();
            for (Fields event : life.listOfFields("events")) {
                said.add(replay.answer(event));
            }
            answers.println("[" + String.join(",", said) + "]");
        }
    }

    private String answer(Fields event) throws DamagedException {
        switch (event.text("do")) {
            case "feed":
                return feed(event);
            case "lead":
                return lead(event);
            case "assigned":
                return assigned(event);
            case "rejoin":
                return String.valueOf(membership.planToRejoinFor(event.integer("now", 0)).isPresent());
            case "lost":
                membership.lost();
                return "null";
            case "join":
                return hex(membership.subscriptionData().encode());
            default:
                throw new DamagedException("no such event");
        }
    }

    private String feed(Fields event) throws DamagedException {
        RecordHeaders headers = new RecordHeaders();
        for (Fields header : event.listOfFields("headers")) {
            headers.add(header.text("name"), bytes(header.nullableText("value")));
        }
        return Json.quoted(control.feed(
            bytes(event.nullableText("key")), bytes(event.nullableText("value")), headers).name());
    }

    private String lead(Fields event) throws DamagedException {
        Map<String, Integer> counts = new TreeMap<>();
        partitions(event.fields("counts")).forEach(partition -> counts.merge(partition.topic(), 1, Integer::sum));
        List<Joined> joined = new ArrayList<>();
        Fields members = event.fields("members");
        for (String id : members.names()) {
            joined.add(Joined.of(id, subscription(members.fields(id))));
        }
        GroupView group = GroupView.of(joined, counts);
        String awaited = membership.epochToAwait(group).map(String::valueOf).orElse("null");
        List<String> said = new ArrayList<>();
        Map<String, Assignment> placed = membership.lead(
            group, new KafkaSticky(cluster(counts)), event.integer("now", 0), (epoch, why) -> {
                said.add(epoch.map(String::valueOf).orElse("null"));
                said.add(Json.quoted(why));
            });
        return "{\"awaits\":" + awaited + ",\"epoch\":" + said.get(0) + ",\"why\":" + said.get(1)
            + ",\"placed\":" + object(placed, assignment -> byTopic(assignment.partitions()))
            + ",\"user_data\":" + object(placed, assignment -> hex(assignment.userData())) + "}";
    }

    static Subscription subscription(Fields member) throws DamagedException {
        byte[] userData = bytes(member.nullableText("user_data"));
        Subscription subscription = new Subscription(
            new ArrayList<>(member.fields("topics").names()),
            userData == null ? null : ByteBuffer.wrap(userData),
            partitions(member.fields("owned")),
            (int) member.integer("generation", -1),
            Optional.empty());
        subscription.setGroupInstanceId(Optional.ofNullable(member.nullableText("instance")));
        return subscription;
    }

    private String assigned(Fields event) throws DamagedException {
        byte[] userData = bytes(event.nullableText("user_data"));
        Assignment assignment = new Assignment(
            partitions(event.fields("partitions")), userData == null ? null : ByteBuffer.wrap(userData));
        return membership
            .assigned(assignment, (int) event.integer("generation", 0), event.text("member"), event.integer("now", 0))
            .map(ack -> "{\"key\":" + hex(ByteBuffer.wrap(ack.key())) + ",\"value\":"
                + hex(ByteBuffer.wrap(ack.value())) + "}")
            .orElse("null");
    }

    static Cluster cluster(Map<String, Integer> counts) {
        Node node = new Node(0, "host", 1);
        List<PartitionInfo> infos = new ArrayList<>();
        counts.forEach((topic, count) -> {
            for (int number = 0; number < count; number++) {
                infos.add(new PartitionInfo(topic, number, node, new Node[] {node}, new Node[] {node}));
            }
        });
        return new Cluster("cluster", List.of(node), infos, Set.of(), Set.of());
    }

    static List<TopicPartition> partitions(Fields byTopic) throws DamagedException {
        List<TopicPartition> partitions = new ArrayList<>();
        for (String topic : byTopic.names()) {
            for (int number : Ranges.parse(byTopic.text(topic), 1000)) {
                partitions.add(new TopicPartition(topic, number));
            }
        }
        return partitions;
    }

    static String byTopic(List<TopicPartition> partitions) {
        Map<String, List<Integer>> byTopic = partitions.stream().collect(Collectors.groupingBy(
            TopicPartition::topic, TreeMap::new, Collectors.mapping(TopicPartition::partition, Collectors.toList())));
        return object(byTopic, List::toString);
    }

    static <T> String object(Map<String, T> values, java.util.function.Function<T, String> written) {
        return values.entrySet().stream().map(one -> Json.quoted(one.getKey()) + ":" + written.apply(one.getValue()))
            .collect(Collectors.joining(",", "{", "}"));
    }

    static byte[] bytes(String hex) {
        return hex == null ? null : HEX.parseHex(hex);
    }

    static String hex(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return Json.quoted(HEX.formatHex(copy));
    }
}
