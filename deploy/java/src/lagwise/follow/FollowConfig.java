package lagwise.follow;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

/**
 * Settings, read from the properties of the consumer.
 *
 * @param cluster name of the cluster in the control records; null for Kafka's id of it
 * @param acksTopic empty where nothing is to be acknowledged
 * @param handle of the {@link FollowingConsumer}, where there is one
 */
record FollowConfig(String group, String cluster, String controlTopic, String acksTopic, Map<String, Object> properties,
    Optional<FollowHandle> handle) {

    /** Name of the cluster in the control records, by default Kafka's id of the cluster. */
    static final String CLUSTER = "lagwise.cluster";
    /** Topic with the plans. */
    static final String CONTROL_TOPIC = "lagwise.control.topic";
    /** Topic for what became of them; empty to say nothing. */
    static final String ACKS_TOPIC = "lagwise.acks.topic";
    /** How a {@link FollowingConsumer} finds the assignor of its consumer. */
    static final String HANDLE = "lagwise.handle";

    private static final String OWN_PREFIX = "lagwise.";

    /** What belongs to the user's consuming and not to the connection. */
    private static final Set<String> OF_THE_USER = Set.of(
        "group.id", "group.instance.id", "group.protocol", "group.remote.assignor", "partition.assignment.strategy",
        "key.deserializer", "value.deserializer", "interceptor.classes", "metric.reporters", "client.id",
        "enable.auto.commit", "auto.commit.interval.ms", "auto.offset.reset", "isolation.level", "check.crcs",
        "max.poll.records", "max.poll.interval.ms", "session.timeout.ms", "heartbeat.interval.ms",
        "internal.leave.group.on.close", "internal.throw.on.fetch.stable.offset.unsupported",
        "fetch.min.bytes", "fetch.max.bytes", "fetch.max.wait.ms", "max.partition.fetch.bytes", "exclude.internal.topics",
        "allow.auto.create.topics", "metadata.max.age.ms", "default.api.timeout.ms");

    static FollowConfig of(Map<String, ?> properties) {
        Object handle = properties.get(HANDLE);
        String cluster = text(properties, CLUSTER, "");
        return new FollowConfig(
            text(properties, "group.id", ""),
            cluster.isEmpty() ? null : cluster,
            text(properties, CONTROL_TOPIC, "lagwise.assignments"),
            text(properties, ACKS_TOPIC, "lagwise.acks"),
            new HashMap<>(properties),
            handle instanceof FollowHandle known ? Optional.of(known) : Optional.empty());
    }

    /** Properties of the reader of the control topic. */
    Map<String, Object> reader() {
        Map<String, Object> reader = connection();
        reader.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        reader.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // The job publishes in transactions: an aborted plan is none.
        reader.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        reader.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        reader.put(CommonClientConfigs.METADATA_MAX_AGE_CONFIG, 30_000);
        reader.put(ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, 10_000);
        return reader;
    }

    /** Properties of the writer of acknowledgements. */
    Map<String, Object> writer() {
        Map<String, Object> writer = connection();
        // What both clients know is the connection, what neither knows may be of the user's own security; what one of
        // them knows is not, such as the transactional.id of a file that a consumer and a producer share.
        writer.keySet().removeIf(name -> ConsumerConfig.configNames().contains(name)
            != ProducerConfig.configNames().contains(name));
        writer.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, 1000);
        writer.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, 4000);
        writer.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, 5000);
        return writer;
    }

    /** Properties of a client that asks for the group's lag; no call of it takes longer than that. */
    Map<String, Object> admin(int withinMs) {
        Map<String, Object> admin = connection();
        admin.keySet().removeIf(name -> ConsumerConfig.configNames().contains(name)
            && !AdminClientConfig.configNames().contains(name));
        admin.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, withinMs);
        admin.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, withinMs);
        return admin;
    }

    private Map<String, Object> connection() {
        Map<String, Object> connection = new HashMap<>(properties);
        connection.keySet().removeIf(name -> OF_THE_USER.contains(name) || name.startsWith(OWN_PREFIX));
        connection.put(CommonClientConfigs.CLIENT_ID_CONFIG, text(properties, "client.id", group) + "-lagwise");
        return connection;
    }

    private static String text(Map<String, ?> properties, String name, String otherwise) {
        Object value = properties.get(name);
        return value == null ? otherwise : value.toString().trim();
    }
}
