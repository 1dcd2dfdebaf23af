package lagwise.follow;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/** Asks the broker for committed and log offsets, through a client of its own with the connection of the consumer. */
final class BrokerLags implements LagSource {
    /** The whole group stands still meanwhile. */
    private static final int WITHIN_MS = 2000;

    private final FollowConfig config;
    private final boolean isFromLatest;

    /** @param isFromLatest whether a member without a commit begins at the end: then nothing lags */
    BrokerLags(FollowConfig config, boolean isFromLatest) {
        this.config = config;
        this.isFromLatest = isFromLatest;
    }

    @Override
    public Map<TopicPartition, Long> lags(Collection<TopicPartition> partitions) throws Exception {
        if (partitions.isEmpty()) {
            return Map.of();
        }
        FutureTask<Map<TopicPartition, Long>> asked = new FutureTask<>(() -> ask(partitions));
        // To make a client may block too, as a login over HTTP does.
        Thread thread = new Thread(asked, "lagwise-lag-" + config.group());
        thread.setDaemon(true);
        thread.start();
        try {
            return asked.get(WITHIN_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException error) {
            throw new TimeoutException("no answer within " + WITHIN_MS + " ms");
        } finally {
            asked.cancel(true);
        }
    }

    private Map<TopicPartition, Long> ask(Collection<TopicPartition> partitions) throws Exception {
        Admin admin = Admin.create(config.admin(WITHIN_MS));
        try {
            KafkaFuture<Map<TopicPartition, OffsetAndMetadata>> committed =
                admin.listConsumerGroupOffsets(config.group()).partitionsToOffsetAndMetadata();
            KafkaFuture<Map<TopicPartition, ListOffsetsResultInfo>> starts = offsets(admin, partitions, OffsetSpec.earliest());
            KafkaFuture<Map<TopicPartition, ListOffsetsResultInfo>> ends = offsets(admin, partitions, OffsetSpec.latest());
            Map<TopicPartition, Long> lags = new HashMap<>();
            for (TopicPartition partition : partitions) {
                lags.put(partition, lag(committed.get().get(partition), starts.get().get(partition).offset(),
                    ends.get().get(partition).offset()));
            }
            return lags;
        } finally {
            admin.close(Duration.ZERO);
        }
    }

    private static KafkaFuture<Map<TopicPartition, ListOffsetsResultInfo>> offsets(
        Admin admin, Collection<TopicPartition> partitions, OffsetSpec which) {
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        partitions.forEach(partition -> wanted.put(partition, which));
        return admin.listOffsets(wanted).all();
    }

    /** What lies below the log start is deleted, so it is no lag. */
    private long lag(OffsetAndMetadata committed, long start, long end) {
        long position = committed == null ? (isFromLatest ? end : start) : committed.offset();
        return Math.max(end - Math.max(position, start), 0);
    }
}
