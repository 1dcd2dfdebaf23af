import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import lagwise.follow.FollowingConsumer;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The jar for consumers in Java as a process under trial; its argument is the class of the assignor. */
public final class Follower implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long COMMIT_EVERY_NS = 300_000_000L;
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);

    private final Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
    private final Consumer<byte[], byte[]> consumer;
    private volatile boolean isToldToStop;

    private Follower(String assignor) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", given("BOOTSTRAP_SERVERS"));
        config.put("group.id", given("GROUP"));
        config.put("client.id", given("MEMBER"));
        config.put("session.timeout.ms", given("SESSION_TIMEOUT_MS"));
        config.put("heartbeat.interval.ms", "300");
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "earliest");
        config.put("partition.assignment.strategy", assignor);
        config.put("lagwise.cluster", given("CLUSTER"));
        config.put("lagwise.control.topic", given("CONTROL_TOPIC"));
        config.put("lagwise.acks.topic", given("ACKS_TOPIC"));
        consumer = FollowingConsumer.create(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public static void main(String[] arguments) {
        Follower follower = new Follower(arguments[0]);
        Thread listener = new Thread(follower::listen);
        listener.setDaemon(true);
        listener.start();
        follower.run();
        say("stopped");
    }

    private void listen() {
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            String line = orders.readLine();
            while (line != null && !line.equals("stop")) {
                line = orders.readLine();
            }
        } catch (IOException error) {
            error.printStackTrace();
        }
        isToldToStop = true;
    }

    private void run() {
        long committedNs = System.nanoTime();
        try (consumer) {
            consumer.subscribe(List.of(given("TOPIC")), this);
            while (!isToldToStop) {
                consumer.poll(POLL).forEach(record -> {
                    say("record " + record.partition() + " " + record.offset());
                    next.put(new TopicPartition(record.topic(), record.partition()),
                        new OffsetAndMetadata(record.offset() + 1));
                });
                if (System.nanoTime() - committedNs > COMMIT_EVERY_NS) {
                    committedNs = System.nanoTime();
                    commit(next.keySet());
                }
            }
            commit(next.keySet());
        }
    }

    private void commit(Collection<TopicPartition> partitions) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(next);
        offsets.keySet().retainAll(partitions);
        try {
            consumer.commitSync(offsets);
        } catch (KafkaException refused) {
            // It is no member any more, or a rebalance is under way: the next owner goes on at the commit before.
            System.err.println(refused);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> gained) {
        ConsumerGroupMetadata group = consumer.groupMetadata();
        say("gained " + group.generationId() + " " + listed(gained));
        say("joined " + group.generationId() + " " + group.memberId() + " " + listed(consumer.assignment()));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
        commit(revoked);
        giveUp("revoked", revoked);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> lost) {
        giveUp("lost", lost);
    }

    private void giveUp(String what, Collection<TopicPartition> partitions) {
        next.keySet().removeAll(partitions);
        say(what + " " + listed(partitions));
    }

    private static String listed(Collection<TopicPartition> partitions) {
        return partitions.isEmpty() ? "-" : partitions.stream().map(TopicPartition::partition).sorted()
            .map(String::valueOf).collect(Collectors.joining(","));
    }

    /** One write for each line: other members' lines go to the same file. */
    private static void say(String words) {
        try {
            OUT.write((given("MEMBER") + " " + words + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static String given(String name) {
        return System.getenv("LAGWISE_" + name);
    }
}
