package lagwise.broker;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

import lagwise.control.ControlRecord;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

/** A control topic whose records go straight to an {@link Intake}. The cluster is called local. */
final class FakeTopic {
    static final long NOW_MS = System.currentTimeMillis();

    final Plans plans;
    final Counters counters;
    private final Intake intake;
    private final Map<String, Uuid> ids = new HashMap<>();

    FakeTopic() {
        this(new Plans());
    }

    FakeTopic(Plans plans) {
        this.plans = plans;
        counters = new Counters(plans::size);
        intake = new Intake("local", plans, counters);
        know("t", "u", "v");
    }

    /** There are these topics. */
    void know(String... topics) {
        for (String topic : topics) {
            ids.put(topic, FakeGroup.id(topic));
        }
    }

    PlanAssignor assignor() {
        return new PlanAssignor(plans, counters, new PlanReader(plans, counters));
    }

    FakeTopic publish(PlanText plan) {
        return publish(ControlRecord.encodeKey("local", plan.group), plan.toString(), Optional.empty());
    }

    FakeTopic withdraw(String group, Optional<Long> epoch) {
        return publish(ControlRecord.encodeKey("local", group), null, epoch);
    }

    FakeTopic publish(byte[] key, String value, Optional<Long> epoch) {
        RecordHeaders headers = new RecordHeaders();
        epoch.ifPresent(one -> headers.add("epoch", one.toString().getBytes(StandardCharsets.UTF_8)));
        byte[] bytes = value == null ? null : value.getBytes(StandardCharsets.UTF_8);
        intake.feed(new ConsumerRecord<>("control", 0, 0, 0, TimestampType.CREATE_TIME, 0, 0, key, bytes, headers,
            Optional.empty()), names -> ids, NOW_MS);
        return this;
    }

    FakeTopic settle() {
        intake.settle(names -> ids, NOW_MS);
        return this;
    }

    /** A plan in JSON. */
    static final class PlanText {
        private final Map<String, Map<String, String>> targets = new HashMap<>();
        private final Map<String, String> fields = new HashMap<>();
        final String group;

        PlanText(String group, long epoch) {
            this.group = group;
            fields.put("schema", "1");
            fields.put("cluster", "\"local\"");
            fields.put("group", "\"" + group + "\"");
            fields.put("epoch", Long.toString(epoch));
            fields.put("strategy", "\"lag-sticky\"");
            fields.put("dry_run", "false");
            fields.put("group_protocol", "\"consumer\"");
            fields.put("created_at", "\"2026-01-31T12:00:00.000Z\"");
            fields.put("valid_until", "\"9999-01-31T12:00:00.000Z\"");
            fields.put("base", "{\"generation\":4,\"protocol\":\"lagwise\"}");
            fields.put("migration", "\"possible\"");
            fields.put("moves", "[]");
            fields.put("why", "{\"drain_s_before\":null,\"drain_s_after\":1,\"drain_s_bound\":1.5,\"lag\":0}");
        }

        /** Another value, in JSON; null to leave the field out. */
        PlanText with(String field, String json) {
            fields.put(field, json);
            return this;
        }

        PlanText gives(String memberId) {
            targets.computeIfAbsent(memberId, any -> new HashMap<>());
            return this;
        }

        PlanText gives(String memberId, String topic, String ranges) {
            gives(memberId).targets.get(memberId).put(topic, ranges);
            return this;
        }

        @Override
        public String toString() {
            Map<String, String> all = new HashMap<>(fields);
            all.putIfAbsent("members", targets.entrySet().stream().map(member -> "\"" + member.getKey()
                + "\":{\"instance\":null,\"client\":\"c\",\"host\":\"h\",\"base\":{},\"target\":{"
                + member.getValue().entrySet().stream().map(topic -> "\"" + topic.getKey() + "\":\"" + topic.getValue() + "\"")
                    .collect(Collectors.joining(",")) + "}}").collect(Collectors.joining(",", "{", "}")));
            return all.entrySet().stream().filter(field -> field.getValue() != null)
                .map(field -> "\"" + field.getKey() + "\":" + field.getValue()).collect(Collectors.joining(",", "{", "}"));
        }
    }
}
