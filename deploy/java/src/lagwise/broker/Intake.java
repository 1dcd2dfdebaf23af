package lagwise.broker;

import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;

import lagwise.control.ControlRecord;
import lagwise.control.DamagedException;
import lagwise.control.EpochHeader;
import lagwise.control.Fields;
import lagwise.control.Json;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.Uuid;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Takes the records of the control topic, and makes of them what {@link Plans} holds. Of one thread. */
final class Intake {
    private static final Logger LOG = LoggerFactory.getLogger(Intake.class);
    private static final int MOST_BYTES = 2 << 20;
    private static final int MOST_KEY_BYTES = 1024;
    private static final int MOST_PARTITIONS = 400_000;
    private static final long MOST_WAITING_BYTES = 4 << 20;
    private static final long LOOK_FOR_OVER_EVERY_MS = 1000;

    /** Why a record is ignored; each is said once. */
    private enum Ignored { DAMAGED, NEWER, UNUSABLE, TOO_MUCH }

    private final Plans plans;
    private final Counters counters;
    private final Map<String, Draft> waiting = new LinkedHashMap<>();
    private final Set<Ignored> hasSaid = EnumSet.noneOf(Ignored.class);
    private String cluster;
    private long waitingBytes;
    private long lookedForOverMs;

    /** @param cluster name of the cluster in the records; empty until {@link #nameCluster} is called */
    Intake(String cluster, Plans plans, Counters counters) {
        this.cluster = cluster;
        this.plans = plans;
        this.counters = counters;
    }

    /** Kafka's id of the cluster, which counts where the user gave no name. */
    void nameCluster(String id) {
        if (cluster.isEmpty() && id != null) {
            cluster = id;
        }
    }

    /** Forgets what {@link #settle} has not settled, before the topic is read from its beginning again. */
    void begin() {
        waiting.clear();
        waitingBytes = 0;
    }

    /**
     * Takes in one record, whatever its bytes.
     *
     * @param ids gives topic ids by name, of those topics that there are
     */
    void feed(ConsumerRecord<byte[], byte[]> record, Function<Set<String>, Map<String, Uuid>> ids, long nowMs) {
        try {
            Optional<String> group = group(record.key());
            if (group.isPresent() && record.value() == null) {
                withdraw(group.get(), EpochHeader.read(record.headers()));
            } else if (group.isPresent()) {
                take(group.get(), record.value(), nowMs);
            }
        } catch (DamagedException error) {
            ignore(Ignored.DAMAGED, "damaged: " + error.getMessage());
        }
        if (waitingBytes > MOST_WAITING_BYTES) {
            settle(ids);
        }
    }

    /** Makes plans of the records that came; they wait for this, since topic ids of many are asked for at once. */
    void settle(Function<Set<String>, Map<String, Uuid>> ids, long nowMs) {
        if (!waiting.isEmpty()) {
            settle(ids);
        }
        if (nowMs - lookedForOverMs >= LOOK_FOR_OVER_EVERY_MS) {
            plans.dropOver(nowMs);
            lookedForOverMs = nowMs;
        }
    }

    private void settle(Function<Set<String>, Map<String, Uuid>> ids) {
        Map<String, Uuid> known = ids.apply(
            waiting.values().stream().flatMap(draft -> draft.topics().stream()).collect(Collectors.toSet()));
        for (Draft draft : waiting.values()) {
            String name = "plan " + draft.epoch() + " of group " + draft.group();
            try {
                if (!plans.put(GroupPlan.of(draft, known))) {
                    ignore(Ignored.TOO_MUCH, name + " would take more of the broker's heap than all plans may");
                }
            } catch (DamagedException error) {
                plans.supersede(draft.group(), draft.epoch());
                ignore(Ignored.UNUSABLE, name + " cannot be followed: " + error.getMessage());
            }
        }
        begin();
    }

    /** The group of a key, or nothing where it is of another cluster, or of the driver itself. */
    private Optional<String> group(byte[] key) throws DamagedException {
        if (key == null) {
            throw new DamagedException("no key");
        }
        if (key.length > MOST_KEY_BYTES) {
            throw new DamagedException("a key of " + key.length + " bytes");
        }
        Fields fields = Json.parse(key);
        String group = fields.text("group");
        return fields.text("cluster").equals(cluster) && !group.isEmpty() ? Optional.of(group) : Optional.empty();
    }

    private void take(String group, byte[] value, long nowMs) throws DamagedException {
        if (value.length > MOST_BYTES) {
            throw new DamagedException("of " + value.length + " bytes");
        }
        Fields fields = Json.parse(value);
        if (fields.integer("schema", 1) > ControlRecord.SCHEMA) {
            ignore(Ignored.NEWER, "of a newer format than this jar knows; put the jar of the job's version onto the brokers");
            return;
        }
        ControlRecord record = ControlRecord.of(fields, MOST_PARTITIONS);
        if (!record.cluster().equals(cluster) || !record.group().equals(group)) {
            throw new DamagedException("the key names another group than the value");
        }
        Draft before = waiting.get(group);
        if (plans.isNew(group, record.epoch()) && (before == null || record.epoch() > before.epoch())) {
            dropWaiting(group);
            if (record.isForConsumerGroup() && !record.dryRun()) {
                hold(Draft.of(record), nowMs);
            } else {
                plans.supersede(group, record.epoch());
            }
        }
    }

    private void hold(Draft draft, long nowMs) {
        if (nowMs < draft.validUntilMs()) {
            waiting.put(draft.group(), draft);
            waitingBytes += draft.bytes();
        } else {
            plans.remember(draft.group(), draft.epoch(), draft.leftEmpty());
        }
    }

    private void dropWaiting(String group) {
        Draft dropped = waiting.remove(group);
        if (dropped != null) {
            waitingBytes -= dropped.bytes();
            plans.remember(group, dropped.epoch(), dropped.leftEmpty());
        }
    }

    private void withdraw(String group, Optional<Long> epoch) {
        Draft before = waiting.get(group);
        if (before != null && (epoch.isEmpty() || epoch.get() >= before.epoch())) {
            dropWaiting(group);
        }
        if (before == null || !waiting.containsKey(group)) {
            plans.withdraw(group, epoch);
        }
    }

    private void ignore(Ignored why, String words) {
        counters.ignored.increment();
        if (hasSaid.add(why)) {
            LOG.warn("A record of the control topic is ignored, as all like it will be without a word: {}", words);
        }
    }
}
