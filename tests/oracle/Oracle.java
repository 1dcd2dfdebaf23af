import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Kafka's own assignors and serializers, asked over pipes: one JSON question per line in, one line per answer out, in
 * order: {"answer": ...}, or {"error": "..."} with what Kafka threw. Bytes are hex.
 *
 *   {"do":"assign","assignor":"sticky","topics":{"t":2},"members":{"m":{"topics":["t"],"owned":{"t":[0]},
 *    "generation":5,"instance":null,"rack":null}},"racks":{"t":[["a"],[]]}}   -> {"m":{"t":[0,1]}}
 *   {"do":"time","assignor":"range","topics":{"t":2},"sets":[["t"]],"members":[["m",0]],"owner":"...",
 *    "generation":5,"warm_up":3,"times":5}                                    -> {"ms":[...],"owner":"..."}
 *   {"do":"encode","what":"assignment","version":3,"value":{"partitions":{"t":[0]}}}   -> {"hex":"..."}
 *   {"do":"decode","what":"assignment","hex":"..."}                                    -> the value
 *
 * In "time" an owner is one int32 for each partition in the order of topics: a place in members, or -1.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNodeFactory NEW = JsonNodeFactory.instance;
    private static final HexFormat HEX = HexFormat.of();

    /** For groups of a few members: AbstractStickyAssignor.performReassignments goes round for ever now and then. */
    private static final long ASSIGNED_WITHIN_MS = 10_000;

    public static void main(String[] arguments) throws IOException, InterruptedException {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        // Loggers write to standard output too, and an answer is a line of its own.
        System.setOut(System.err);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = JSON.readTree(line);
            boolean mayNeverEnd = question.get("do").asText().equals("assign");
            answers.println(JSON.writeValueAsString(mayNeverEnd ? answerInTime(question) : answer(question)));
        }
    }

    @SuppressWarnings({"deprecation", "removal"})
    private static JsonNode answerInTime(JsonNode question) throws InterruptedException {
        JsonNode[] given = new JsonNode[1];
        Thread work = new Thread(() -> given[0] = answer(question));
        work.setDaemon(true);
        work.start();
        work.join(ASSIGNED_WITHIN_MS);
        if (!work.isAlive()) {
            return given[0] != null ? given[0] : NEW.objectNode().put("error", "an Error, see standard error");
        }
        try {
            work.stop();
        } catch (UnsupportedOperationException error) {
            // From Java 20 on nothing stops it but the end of the process.
        }
        return NEW.objectNode().put("error", "no end within " + ASSIGNED_WITHIN_MS + " ms");
    }

    private static JsonNode answer(JsonNode question) {
        try {
            return NEW.objectNode().set("answer", switch (question.get("do").asText()) {
                case "assign" -> assign(question);
                case "time" -> time(question);
                case "encode" -> encode(question);
                case "decode" -> decode(question);
                default -> throw new IllegalArgumentException("no such question");
            });
        } catch (RuntimeException | ReflectiveOperationException error) {
            return NEW.objectNode().put("error", error.toString());
        }
    }

    // ---- assignors ----

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException("no such assignor");
        };
    }

    private static JsonNode assign(JsonNode question) {
        // Kafka's leader holds the members in a HashMap too, and some of its results follow that order.
        Map<String, Subscription> members = new HashMap<>();
        String name = question.get("assignor").asText();
        question.get("members").fields().forEachRemaining(
            member -> members.put(member.getKey(), subscription(name, member.getKey(), member.getValue())));
        Map<String, Assignment> assigned = assignor(name)
            .assign(cluster(question.get("topics"), question.path("racks")), new GroupSubscription(members))
            .groupAssignment();
        ObjectNode answer = NEW.objectNode();
        assigned.forEach((member, assignment) -> answer.set(member, byTopic(assignment.partitions())));
        return answer;
    }

    private static Subscription subscription(String assignor, String memberId, JsonNode member) {
        List<String> topics = strings(member.get("topics"));
        List<TopicPartition> owned = partitions(member.path("owned"));
        int generation = member.path("generation").asInt(AbstractStickyAssignor.DEFAULT_GENERATION);
        boolean eager = assignor.equals("sticky");
        Subscription subscription = new Subscription(
            topics,
            eager ? stickyUserData(topics, owned, generation) : null,
            // An eager member has revoked everything before it joins; only its user data remembers.
            eager ? List.of() : owned,
            generation,
            Optional.ofNullable(textOrNull(member.path("rack"))));
        subscription.setGroupInstanceId(Optional.ofNullable(textOrNull(member.path("instance"))));
        return subscription;
    }

    /** What the member's own StickyAssignor sends after it was given these partitions. */
    private static ByteBuffer stickyUserData(List<String> topics, List<TopicPartition> owned, int generation) {
        StickyAssignor assignor = new StickyAssignor();
        assignor.onAssignment(new Assignment(owned), inGeneration(generation));
        return assignor.subscriptionUserData(Collections.emptySet());
    }

    @SuppressWarnings("removal")  // Until it goes, it is the only way to tell an assignor its generation.
    private static ConsumerGroupMetadata inGeneration(int generation) {
        return new ConsumerGroupMetadata("group", generation, "member", Optional.empty());
    }

    private static Cluster cluster(JsonNode topics, JsonNode racks) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> infos = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            for (int number = 0; number < topic.getValue().asInt(); number++) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks.path(topic.getKey()).path(number)) {
                    replicas.add(nodes.computeIfAbsent(rack.asText(), r -> new Node(nodes.size(), "host", 1, r)));
                }
                Node[] array = replicas.toArray(new Node[0]);
                Node leader = replicas.isEmpty() ? null : replicas.get(0);
                infos.add(new PartitionInfo(topic.getKey(), number, leader, array, array));
            }
        });
        return new Cluster("cluster", nodes.values(), infos, Collections.emptySet(), Collections.emptySet());
    }

    // ---- stopwatch ----

    private static JsonNode time(JsonNode question) {
        List<TopicPartition> partitions = new ArrayList<>();
        question.get("topics").fields().forEachRemaining(topic -> {
            for (int number = 0; number < topic.getValue().asInt(); number++) {
                partitions.add(new TopicPartition(topic.getKey(), number));
            }
        });
        Cluster cluster = cluster(question.get("topics"), NEW.missingNode());
        Map<String, Subscription> members = membersByColumns(question, partitions);
        String name = question.get("assignor").asText();
        ArrayNode milliseconds = NEW.arrayNode();
        Map<String, Assignment> assigned = Map.of();
        int warmUp = question.get("warm_up").asInt();
        for (int run = 0; run < warmUp + question.get("times").asInt(); run++) {
            ConsumerPartitionAssignor assignor = assignor(name);
            GroupSubscription group = new GroupSubscription(members);
            long begun = System.nanoTime();
            assigned = assignor.assign(cluster, group).groupAssignment();
            long ended = System.nanoTime();
            if (run >= warmUp) {
                milliseconds.add((ended - begun) / 1e6);
            }
        }
        ObjectNode answer = NEW.objectNode();
        answer.set("ms", milliseconds);
        return answer.put("owner", ownerColumn(question, partitions, assigned));
    }

    private static Map<String, Subscription> membersByColumns(JsonNode question, List<TopicPartition> partitions) {
        List<List<TopicPartition>> owned = new ArrayList<>();
        question.get("members").forEach(member -> owned.add(new ArrayList<>()));
        ByteBuffer owner = ByteBuffer.wrap(HEX.parseHex(question.get("owner").asText()));
        for (TopicPartition partition : partitions) {
            int place = owner.getInt();
            if (place >= 0) {
                owned.get(place).add(partition);
            }
        }
        List<List<String>> sets = new ArrayList<>();
        question.get("sets").forEach(set -> sets.add(strings(set)));
        int generation = question.get("generation").asInt();
        Map<String, Subscription> members = new HashMap<>();
        for (int place = 0; place < owned.size(); place++) {
            JsonNode member = question.get("members").get(place);
            List<String> topics = sets.get(member.get(1).asInt());
            members.put(
                member.get(0).asText(),
                new Subscription(topics, null, owned.get(place), generation, Optional.empty()));
        }
        return members;
    }

    private static String ownerColumn(
            JsonNode question, List<TopicPartition> partitions, Map<String, Assignment> assigned) {
        Map<TopicPartition, Integer> owner = new HashMap<>();
        for (int place = 0; place < question.get("members").size(); place++) {
            String memberId = question.get("members").get(place).get(0).asText();
            for (TopicPartition partition : assigned.get(memberId).partitions()) {
                owner.put(partition, place);
            }
        }
        ByteBuffer column = ByteBuffer.allocate(Integer.BYTES * partitions.size());
        partitions.forEach(partition -> column.putInt(owner.getOrDefault(partition, -1)));
        return HEX.formatHex(column.array());
    }

    // ---- serializers ----

    private static JsonNode encode(JsonNode question) throws ReflectiveOperationException {
        JsonNode value = question.path("value");
        short version = (short) question.path("version").asInt();
        ObjectNode answer = NEW.objectNode();
        return switch (question.get("what").asText()) {
            case "subscription" -> answer.put("hex", hex(ConsumerProtocol.serializeSubscription(
                new Subscription(
                    strings(value.get("topics")),
                    bufferOrNull(value.path("user_data")),
                    partitions(value.get("owned")),
                    value.get("generation").asInt(),
                    Optional.ofNullable(textOrNull(value.path("rack")))),
                version)));
            case "assignment" -> answer.put("hex", hex(ConsumerProtocol.serializeAssignment(
                new Assignment(partitions(value.get("partitions")), bufferOrNull(value.path("user_data"))),
                version)));
            case "sticky" -> answer.put("hex", hex(version == 0
                ? stickyUserDataV0(value.get("owned"))
                : stickyUserData(List.of(), partitions(value.get("owned")), value.get("generation").asInt())));
            case "cooperative" -> answer.put("hex", hex(cooperativeUserData(value.get("generation").asInt())));
            case "record" -> encodeRecord(question, version);
            default -> throw new IllegalArgumentException("no such codec");
        };
    }

    private static JsonNode decode(JsonNode question) {
        ByteBuffer data = bufferOrNull(question.path("hex"));
        return switch (question.get("what").asText()) {
            case "subscription" -> describe(ConsumerProtocol.deserializeSubscription(data));
            case "assignment" -> {
                Assignment assignment = ConsumerProtocol.deserializeAssignment(data);
                ObjectNode answer = NEW.objectNode();
                answer.set("partitions", byTopic(assignment.partitions()));
                yield answer.put("user_data", hexOrNull(assignment.userData()));
            }
            case "sticky" -> new OpenSticky().claims(new Subscription(List.of(), data));
            case "cooperative" -> new OpenCooperative().claims(ConsumerProtocol.deserializeSubscription(data));
            case "record" -> decodeRecord(question);
            default -> throw new IllegalArgumentException("no such codec");
        };
    }

    private static JsonNode describe(Subscription subscription) {
        ObjectNode answer = NEW.objectNode();
        ArrayNode topics = answer.putArray("topics");
        subscription.topics().forEach(topics::add);
        answer.set("owned", byTopic(subscription.ownedPartitions()));
        return answer
            .put("user_data", hexOrNull(subscription.userData()))
            .put("generation", subscription.generationId().orElse(AbstractStickyAssignor.DEFAULT_GENERATION))
            .put("rack", subscription.rackId().orElse(null));
    }

    private static JsonNode describe(AbstractStickyAssignor.MemberData claims) {
        ObjectNode answer = NEW.objectNode();
        answer.set("owned", byTopic(claims.partitions));
        return answer.put(
            "generation", claims.generation.orElse(AbstractStickyAssignor.DEFAULT_GENERATION));
    }

    private static final class OpenSticky extends StickyAssignor {
        JsonNode claims(Subscription subscription) {
            return describe(memberData(subscription));
        }
    }

    private static final class OpenCooperative extends CooperativeStickyAssignor {
        JsonNode claims(Subscription subscription) {
            return describe(memberData(subscription));
        }
    }

    private static ByteBuffer cooperativeUserData(int generation) {
        CooperativeStickyAssignor assignor = new CooperativeStickyAssignor();
        assignor.onAssignment(new Assignment(List.of()), inGeneration(generation));
        return assignor.subscriptionUserData(Collections.emptySet());
    }

    /** Kafka still has the layout of version 0 (to read it), but no way to write it. */
    private static ByteBuffer stickyUserDataV0(JsonNode owned) throws ReflectiveOperationException {
        var field = StickyAssignor.class.getDeclaredField("STICKY_ASSIGNOR_USER_DATA_V0");
        field.setAccessible(true);
        Schema schema = (Schema) field.get(null);
        Struct data = new Struct(schema);
        List<Struct> topics = new ArrayList<>();
        owned.fields().forEachRemaining(entry -> {
            List<Integer> numbers = new ArrayList<>();
            entry.getValue().forEach(number -> numbers.add(number.asInt()));
            topics.add(data.instance("previous_assignment")
                .set("topic", entry.getKey())
                .set("partitions", numbers.toArray()));
        });
        data.set("previous_assignment", topics.toArray());
        ByteBuffer buffer = ByteBuffer.allocate(schema.sizeOf(data));
        schema.write(buffer, data);
        return buffer.flip();
    }

    private static JsonNode encodeRecord(JsonNode question, short version) {
        short type = (short) question.get("type").asInt();
        ApiMessage key = CoordinatorRecordJsonConverters.readRecordKeyFromJson(question.get("key"), type);
        ApiMessage value =
            CoordinatorRecordJsonConverters.readRecordValueFromJson(question.get("value"), type, version);
        var record = CoordinatorRecord.record(key, new ApiMessageAndVersion(value, version));
        var serde = new GroupCoordinatorRecordSerde();
        return NEW.objectNode()
            .put("key", HEX.formatHex(serde.serializeKey(record)))
            .put("value", HEX.formatHex(serde.serializeValue(record)));
    }

    private static JsonNode decodeRecord(JsonNode question) {
        CoordinatorRecord record = new GroupCoordinatorRecordSerde()
            .deserialize(bufferOrNull(question.get("key")), bufferOrNull(question.get("value")));
        ApiMessageAndVersion value = record.value();
        ObjectNode answer = NEW.objectNode().put("type", record.key().apiKey()).put("version", value.version());
        answer.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
        answer.set(
            "value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(value.message(), value.version()));
        return answer;
    }

    // ---- JSON and bytes ----

    private static List<String> strings(JsonNode array) {
        List<String> strings = new ArrayList<>();
        array.forEach(text -> strings.add(text.asText()));
        return strings;
    }

    private static List<TopicPartition> partitions(JsonNode byTopic) {
        List<TopicPartition> partitions = new ArrayList<>();
        byTopic.fields().forEachRemaining(topic -> topic.getValue().forEach(
            number -> partitions.add(new TopicPartition(topic.getKey(), number.asInt()))));
        return partitions;
    }

    private static ObjectNode byTopic(Collection<TopicPartition> partitions) {
        ObjectNode topics = NEW.objectNode();
        for (TopicPartition partition : partitions) {
            ArrayNode numbers = (ArrayNode) topics.get(partition.topic());
            (numbers == null ? topics.putArray(partition.topic()) : numbers).add(partition.partition());
        }
        return topics;
    }

    private static String textOrNull(JsonNode node) {
        return node.isTextual() ? node.asText() : null;
    }

    private static ByteBuffer bufferOrNull(JsonNode node) {
        return node.isTextual() ? ByteBuffer.wrap(HEX.parseHex(node.asText())) : null;
    }

    private static String hexOrNull(ByteBuffer buffer) {
        return buffer == null ? null : hex(buffer);
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
