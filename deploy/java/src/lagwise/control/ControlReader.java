package lagwise.control;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.ClusterResource;
import org.apache.kafka.common.ClusterResourceListener;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads all of the control topic, from its beginning. It raises what Kafka raises; then open it again, or, where the error
 * is of the kind that does not pass by itself, make another.
 */
public final class ControlReader implements AutoCloseable {
    /** How long a poll waits for records, at most. */
    public static final long POLL_MS = 100;
    private static final Duration CLOSE_WITHIN = Duration.ofSeconds(1);

    private final Consumer<ConsumerRecord<byte[], byte[]>> feed;
    private final String topic;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Set<TopicPartition> reading = new HashSet<>();

    /**
     * Connects to nothing yet.
     *
     * @param properties of a Kafka consumer, without its deserializers
     * @param feed is given each record
     * @param nameCluster is told Kafka's id of the cluster, whenever a client hears of it
     */
    public ControlReader(Map<String, Object> properties, String topic, Consumer<ConsumerRecord<byte[], byte[]>> feed,
        Consumer<String> nameCluster) {
        this.feed = feed;
        this.topic = topic;
        this.consumer = new KafkaConsumer<>(properties, new ClusterNamer(nameCluster), new ByteArrayDeserializer());
    }

    /** Finds the topic's partitions, and with them the id of the cluster; reads from the beginning, also when opened again. */
    public void open() {
        // A topic that was deleted and made again starts at offset 0, wherever the old one was read to.
        if (!reading.isEmpty()) {
            reading.clear();
            consumer.unsubscribe();
        }
        look();
    }

    /** Feeds what has come; waits a little for it. */
    public void poll() {
        consumer.poll(Duration.ofMillis(POLL_MS)).forEach(feed);
        // The client answers from its metadata. The sooner a lost topic is noticed, the less the client itself warns of it:
        // it asks for records without a pause, and logs each answer.
        look();
    }

    /** How many requests for records brokers have answered, with records or without. */
    public long answers() {
        return consumer.metrics().entrySet().stream()
            .filter(one -> one.getKey().name().equals("fetch-total") && one.getKey().group().equals("consumer-fetch-manager-metrics"))
            .mapToLong(one -> ((Number) one.getValue().metricValue()).longValue()).sum();
    }

    /** Notices a topic that is gone, which a consumer would wait for in silence, and partitions that are new. */
    private void look() {
        List<PartitionInfo> found = consumer.partitionsFor(topic);
        if (found == null || found.isEmpty()) {
            throw new UnknownTopicOrPartitionException("no topic " + topic);
        }
        Set<TopicPartition> added = new HashSet<>();
        found.forEach(partition -> added.add(new TopicPartition(topic, partition.partition())));
        added.removeAll(reading);
        if (!added.isEmpty()) {
            reading.addAll(added);
            consumer.assign(reading);
            consumer.seekToBeginning(added);
        }
    }

    @Override
    @SuppressWarnings("deprecation") // since Kafka 4.1; older ones have no other
    public void close() {
        consumer.close(CLOSE_WITHIN);
    }

    /** The client tells its deserializers the id of the cluster. */
    private static final class ClusterNamer extends ByteArrayDeserializer implements ClusterResourceListener {
        private final Consumer<String> nameCluster;

        ClusterNamer(Consumer<String> nameCluster) {
            this.nameCluster = nameCluster;
        }

        @Override
        public void onUpdate(ClusterResource cluster) {
            nameCluster.accept(cluster.clusterId());
        }
    }
}
