package lagwise.follow;

import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

import lagwise.control.ControlRecord;
import lagwise.control.DamagedException;
import lagwise.control.EpochHeader;

import org.apache.kafka.common.header.Headers;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a reader of the control topic knows of one group: the record of the largest epoch seen, in whatever order and
 * however often records come. One thread feeds it, others ask.
 */
final class ControlState {
    private static final Logger LOG = LoggerFactory.getLogger(ControlState.class);

    /** What a record did. */
    enum Fed { NEWER, WITHDRAWN, OLD, OTHER, DAMAGED }

    private final String group;
    private String cluster;
    private byte[] key;
    private long epoch;
    private ControlRecord newest;
    private boolean hasSaidDamaged;

    /** @param cluster name of the cluster in the records, null until {@link #nameCluster} is called */
    ControlState(String cluster, String group) {
        this.group = group;
        nameCluster(cluster);
    }

    /** Kafka's id of the cluster, which counts where the user gave no name. */
    final synchronized void nameCluster(String id) {
        if (cluster == null && id != null) {
            cluster = id;
            key = ControlRecord.encodeKey(id, group);
        }
    }

    synchronized String cluster() {
        return cluster;
    }

    String group() {
        return group;
    }

    /** Largest epoch seen, withdrawals and dry runs included; 0 before the first. */
    synchronized long epoch() {
        return epoch;
    }

    /** Largest epoch seen, and the plan that goes with it at that time, in ms since 1970. */
    synchronized Newest newest(long nowMs) {
        Optional<ControlRecord> plan = Optional.ofNullable(newest).filter(one -> !one.dryRun() && one.isForClassicGroup());
        return new Newest(epoch, plan.filter(one -> nowMs < one.validUntilMs()),
            plan.filter(one -> nowMs >= one.validUntilMs()));
    }

    /**
     * Newest record of a group, as of a given time.
     *
     * @param plan the plan to follow
     * @param over the plan that was to be followed until its time was over
     */
    record Newest(long epoch, Optional<ControlRecord> plan, Optional<ControlRecord> over) {
    }

    /** Waits until a record of that epoch was seen, or the time is over. */
    synchronized void awaitEpoch(long wanted, long atMostMs) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(atMostMs);
        while (epoch < wanted) {
            long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            if (leftMs <= 0) {
                return;
            }
            wait(leftMs);
        }
    }

    /** Takes in one record, whatever its bytes. */
    synchronized Fed feed(byte[] recordKey, byte[] value, Headers headers) {
        // Compared as compaction compares: the records of other groups, which are nearly all, are not decoded.
        if (key == null || !Arrays.equals(key, recordKey)) {
            return Fed.OTHER;
        }
        try {
            Fed fed = value == null ? withdraw(EpochHeader.read(headers)) : take(ControlRecord.decode(value));
            notifyAll();
            return fed;
        } catch (DamagedException error) {
            if (!hasSaidDamaged) {
                hasSaidDamaged = true;
                LOG.warn("A control record of group {} cannot be decoded; it and all others like it are ignored, and the "
                    + "previous plan stays in force; withdraw the plan or publish another: {}", group,
                    error.getMessage());
            }
            return Fed.DAMAGED;
        }
    }

    private Fed take(ControlRecord plan) throws DamagedException {
        if (!plan.cluster().equals(cluster) || !plan.group().equals(group)) {
            throw new DamagedException("the key names another group than the value");
        }
        if (plan.epoch() <= epoch) {
            return Fed.OLD;
        }
        epoch = plan.epoch();
        newest = plan;
        return Fed.NEWER;
    }

    /** @param withdrawn the epoch in the header; a hand-made null has none, and to stop following is always safe */
    private Fed withdraw(Optional<Long> withdrawn) {
        if (withdrawn.isPresent() && withdrawn.get() < epoch) {
            return Fed.OLD;
        }
        epoch = Math.max(epoch, withdrawn.orElse(0L));
        newest = null;
        return Fed.WITHDRAWN;
    }
}
