package lagwise.control;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;

/**
 * A plan for one group, as far as a leader needs it; the whole record is checked all the same.
 *
 * @param epoch number of the plan, from 1
 * @param strategy name of the strategy that made it
 * @param dryRun members must not follow it
 * @param groupProtocol {@code classic}, {@code consumer}, or a word of a later version: whose members it is for
 * @param validUntilMs members must not follow it from then on, in ms since 1970
 * @param baseGeneration generation of the group that it was made for
 * @param members by member id
 * @param unassigned by reason, partitions that nobody may read
 */
public record ControlRecord(
    String cluster,
    String group,
    long epoch,
    String strategy,
    boolean dryRun,
    String groupProtocol,
    long validUntilMs,
    long baseGeneration,
    Map<String, Member> members,
    Map<String, List<TopicPartition>> unassigned) {

    /** The newest format that is known. A reader may read newer ones, and ignore the fields that it does not know. */
    public static final int SCHEMA = 1;

    private static final int MAX_PARTITIONS = 2_000_000;
    private static final String CLASSIC = "classic";
    private static final String CONSUMER = "consumer";

    /** Partitions of one member in the base generation, and in the end. */
    public record Member(List<TopicPartition> base, List<TopicPartition> target) {
        public boolean keepsAll() {
            return new HashSet<>(base).equals(new HashSet<>(target));
        }
    }

    /** Whether it is for a group whose members assign themselves. */
    public boolean isForClassicGroup() {
        return groupProtocol.equals(CLASSIC);
    }

    /** Whether it is for a group that the broker assigns (KIP-848). */
    public boolean isForConsumerGroup() {
        return groupProtocol.equals(CONSUMER);
    }

    /** The key, to the byte: compaction compares bytes. */
    public static byte[] encodeKey(String cluster, String group) {
        return ("{\"cluster\":" + Json.quoted(cluster) + ",\"group\":" + Json.quoted(group) + "}")
            .getBytes(StandardCharsets.UTF_8);
    }

    /** The record in a value. */
    public static ControlRecord decode(byte[] value) throws DamagedException {
        return of(Json.parse(value), MAX_PARTITIONS);
    }

    /**
     * The record in the fields of a value.
     *
     * @param atMost number of partitions, base and target together, above which the record is refused
     */
    public static ControlRecord of(Fields fields, int atMost) throws DamagedException {
        fields.integer("schema", 1);
        checkForPeople(fields);
        Partitions partitions = new Partitions(atMost);
        return new ControlRecord(
            fields.text("cluster"),
            fields.text("group"),
            fields.integer("epoch", 1),
            fields.text("strategy"),
            fields.bool("dry_run"),
            fields.has("group_protocol") ? fields.text("group_protocol") : CLASSIC,
            Instants.parse(fields.text("valid_until")),
            fields.fields("base").integer("generation", -1),
            members(fields.fields("members"), partitions),
            unassigned(fields, partitions));
    }

    /** Fields that nothing here uses; a record that has them wrong is no record. */
    private static void checkForPeople(Fields fields) throws DamagedException {
        Instants.parse(fields.text("created_at"));
        fields.fields("base").text("protocol");
        if (fields.has("migration")) {
            fields.text("migration");
        }
        for (Fields move : fields.listOfFields("moves")) {
            move.text("topic");
            move.integer("partition", 0);
            move.nullableText("from");
            move.nullableText("to");
        }
        Fields why = fields.fields("why");
        for (String seconds : List.of("drain_s_before", "drain_s_after", "drain_s_bound")) {
            why.checkNullableNumber(seconds);
        }
        why.integer("lag", 0);
    }

    private static Map<String, Member> members(Fields byId, Partitions partitions) throws DamagedException {
        Map<String, Member> members = new LinkedHashMap<>();
        for (String id : byId.names()) {
            Fields member = byId.fields(id);
            member.nullableText("instance");
            member.text("client");
            member.text("host");
            List<TopicPartition> base = partitions.byTopic(member.fields("base"));
            members.put(id, new Member(base, partitions.byTopic(member.fields("target"))));
        }
        return members;
    }

    private static Map<String, List<TopicPartition>> unassigned(Fields fields, Partitions partitions)
        throws DamagedException {
        Map<String, List<TopicPartition>> unassigned = new LinkedHashMap<>();
        if (fields.has("unassigned")) {
            Fields byReason = fields.fields("unassigned");
            for (String reason : byReason.names()) {
                unassigned.put(reason, partitions.byTopic(byReason.fields(reason)));
            }
        }
        return unassigned;
    }

    /** Spreads out ranges, with one limit for the whole record: a few characters could ask for thousands of millions. */
    private static final class Partitions {
        private int left;

        Partitions(int atMost) {
            left = atMost;
        }

        List<TopicPartition> byTopic(Fields ranges) throws DamagedException {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : ranges.names()) {
                List<Integer> numbers = Ranges.parse(ranges.text(topic), left);
                left -= numbers.size();
                numbers.forEach(number -> partitions.add(new TopicPartition(topic, number)));
            }
            return partitions;
        }
    }
}
