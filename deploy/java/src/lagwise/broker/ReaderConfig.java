package lagwise.broker;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;

/**
 * Settings, read from the properties of the broker: those that begin with {@code lagwise.}. Besides its own ones each is,
 * without the prefix, a property of the clients that read the control topic: {@code lagwise.sasl.jaas.config} and the like.
 *
 * @param cluster name of the cluster in the control records; empty for Kafka's id of it
 * @param connection properties of the clients, of any kind
 */
record ReaderConfig(String cluster, String controlTopic, Map<String, Object> connection) {

    /** Where the control topic is; without it nothing is read. */
    static final String BOOTSTRAP = "lagwise.bootstrap.servers";
    /** Name of the cluster in the control records, by default Kafka's id of the cluster. */
    static final String CLUSTER = "lagwise.cluster";
    /** Topic with the plans. */
    static final String CONTROL_TOPIC = "lagwise.control.topic";

    private static final String PREFIX = "lagwise.";
    private static final int MOST_FETCHED_BYTES = 8 << 20;
    /** Kafka's default is 500: records take far more heap than bytes if they are compressed. */
    private static final int MOST_RECORDS_AT_ONCE = 100;
    private static final int ANSWER_WITHIN_MS = 10_000;
    /** Kafka's defaults are 50 ms and 1 s: each attempt to reach brokers that are away puts lines into the broker's log. */
    private static final int RECONNECT_AFTER_MS = 5000;
    private static final int RECONNECT_AFTER_AT_MOST_MS = 15_000;
    /** A new leader of the control topic is found within this: a plan that comes meanwhile misses the poke that is for it. */
    private static final int ASK_AGAIN_AFTER_AT_MOST_MS = 2000;
    /** What would make the reader a member of a group, or change how it reads records. */
    private static final Set<String> NOT_OF_A_CONNECTION = Set.of(
        "group.id", "group.instance.id", "group.protocol", "group.remote.assignor", "key.deserializer", "value.deserializer");

    static ReaderConfig of(Map<String, ?> broker) {
        Map<String, Object> connection = new HashMap<>();
        broker.forEach((name, value) -> {
            if (name.startsWith(PREFIX) && !name.equals(CLUSTER) && !name.equals(CONTROL_TOPIC)) {
                connection.put(name.substring(PREFIX.length()), value);
            }
        });
        connection.keySet().removeAll(NOT_OF_A_CONNECTION);
        connection.putIfAbsent(
            CommonClientConfigs.CLIENT_ID_CONFIG, "lagwise-broker-assignor-" + text(broker, "node.id", "of-no-node"));
        connection.putIfAbsent(CommonClientConfigs.RECONNECT_BACKOFF_MS_CONFIG, RECONNECT_AFTER_MS);
        connection.putIfAbsent(CommonClientConfigs.RECONNECT_BACKOFF_MAX_MS_CONFIG, RECONNECT_AFTER_AT_MOST_MS);
        // Clients of Kafka 4 also say "Rebootstrapping" each time that they ask for metadata in vain.
        connection.putIfAbsent(CommonClientConfigs.RETRY_BACKOFF_MAX_MS_CONFIG, ASK_AGAIN_AFTER_AT_MOST_MS);
        return new ReaderConfig(
            text(broker, CLUSTER, ""), text(broker, CONTROL_TOPIC, "lagwise.assignments"), Map.copyOf(connection));
    }

    /** Whether it says where the control topic is. */
    boolean namesServers() {
        return !text(connection, CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, "").isEmpty();
    }

    /** Properties of the reader of the control topic. */
    Map<String, Object> reader() {
        Map<String, Object> reader = new HashMap<>(connection);
        reader.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        reader.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        // The job publishes in transactions: an aborted plan is none.
        reader.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        reader.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        // Kafka's default of 50 MB is much for a guest in a broker's heap.
        reader.put(ConsumerConfig.FETCH_MAX_BYTES_CONFIG, MOST_FETCHED_BYTES);
        reader.putIfAbsent(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, MOST_RECORDS_AT_ONCE);
        reader.put(CommonClientConfigs.METADATA_MAX_AGE_CONFIG, 30_000);
        reader.putIfAbsent(ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, ANSWER_WITHIN_MS);
        return reader;
    }

    /** Properties of the client that asks for topic ids. */
    Map<String, Object> admin() {
        Map<String, Object> admin = new HashMap<>(connection);
        admin.keySet().removeIf(name -> ConsumerConfig.configNames().contains(name)
            && !AdminClientConfig.configNames().contains(name));
        admin.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, ANSWER_WITHIN_MS);
        // Less than the whole: 30 s for one request would be more than what all of it may take.
        admin.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, ANSWER_WITHIN_MS);
        return admin;
    }

    private static String text(Map<String, ?> properties, String name, String otherwise) {
        Object value = properties.get(name);
        return value == null ? otherwise : value.toString().trim();
    }
}
