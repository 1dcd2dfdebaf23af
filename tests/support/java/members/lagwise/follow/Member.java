package lagwise.follow;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import lagwise.control.DamagedException;
import lagwise.control.Fields;
import lagwise.control.Json;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A consumer that processes, commits, and writes a line of JSON of all that it sees:
 *
 *   {"at":1.5,"who":"a","what":"joined","member":"…","generation":3,"topics":["t"],"places":[0]}
 *   {…"what":"gained|revoked|lost","generation":3,"topics":[…],"places":[…]}     each place in its topic
 *   {…"what":"record","topic":"t","place":0,"offset":17}   {…"what":"commit","begun":1.4,"accepted":true,"refused":""}
 *   {…"what":"hurt"}   {…"what":"closed"}   {…"what":"failed","problem":"…"}
 */
final class Member extends Thread implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long COMMIT_EVERY_NS = 300_000_000L;

    private final OutputStream log;
    private final String who;
    private final List<String> topics;
    private final boolean isFollowing;
    private final boolean isCommitting;
    private final String copiesTo;
    private final Map<String, Object> config = new HashMap<>();
    private final Map<TopicPartition, Long> next = new HashMap<>();
    private long committedNs = System.nanoTime();
    private volatile boolean isEnding;
    private volatile boolean isToStop;
    private volatile boolean isToRejoin;
    private Consumer<byte[], byte[]> consumer;

    Member(Fields start, OutputStream log) throws DamagedException {
        this.log = log;
        this.who = start.text("who");
        this.topics = new ArrayList<>(start.fields("topics").names());
        this.isFollowing = start.bool("following");
        this.copiesTo = start.has("copies_to") ? start.nullableText("copies_to") : null;
        this.isCommitting = copiesTo == null && (!start.has("commits") || start.bool("commits"));
        Fields given = start.fields("config");
        for (String name : given.names()) {
            config.put(name, given.text(name));
        }
        setDaemon(true);
    }

    void end() {
        isEnding = true;
    }

    void stopBeforeCommit() {
        isToStop = true;
    }

    void rejoin() {
        isToRejoin = true;
    }

    @Override
    public void run() {
        try (Transactions transactions = transactions(); Consumer<byte[], byte[]> made = made()) {
            consumer = made;
            consumer.subscribe(topics, this);
            while (!isEnding) {
                if (isToRejoin) {
                    isToRejoin = false;
                    consumer.enforceRebalance();
                }
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                records.forEach(record -> {
                    next.put(new TopicPartition(record.topic(), record.partition()), record.offset() + 1);
                    note("record", ",\"topic\":" + Json.quoted(record.topic()) + ",\"place\":" + record.partition()
                        + ",\"offset\":" + record.offset());
                });
                if (transactions != null) {
                    transactions.copy(consumer, records);
                }
                commitIfDue();
            }
        } catch (Exception error) {
            note("failed", ",\"problem\":" + Json.quoted(error.toString()));
            error.printStackTrace();
        }
        note("closed", "");
    }

    /** Null where it commits by itself. */
    private Transactions transactions() {
        return copiesTo == null ? null
            : new Transactions(
                config.get("bootstrap.servers"), config.get("group.id") + " " + who, copiesTo, this::stopIfTold);
    }

    private Consumer<byte[], byte[]> made() {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        return isFollowing
            ? FollowingConsumer.create(config, bytes, new ByteArrayDeserializer())
            : new KafkaConsumer<>(config, bytes, new ByteArrayDeserializer());
    }

    private void commitIfDue() {
        if (!isCommitting || next.isEmpty() || System.nanoTime() - committedNs < COMMIT_EVERY_NS) {
            return;
        }
        committedNs = System.nanoTime();
        stopIfTold();
        commit(next.keySet());
    }

    private void stopIfTold() {
        if (!isToStop) {
            return;
        }
        isToStop = false;
        note("hurt", "");
        try {
            new ProcessBuilder("kill", "-STOP", String.valueOf(ProcessHandle.current().pid())).start().waitFor();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void commit(Collection<TopicPartition> partitions) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        partitions.stream().filter(next::containsKey)
            .forEach(partition -> offsets.put(partition, new OffsetAndMetadata(next.get(partition))));
        if (!isCommitting || offsets.isEmpty()) {
            return;
        }
        double begun = now();
        String refused = "";
        try {
            consumer.commitSync(offsets);
        } catch (KafkaException error) {
            refused = error.getClass().getSimpleName();
        }
        note("commit", ",\"begun\":" + begun + ",\"accepted\":" + refused.isEmpty() + ",\"refused\":\"" + refused + "\"");
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> gained) {
        int generation = consumer.groupMetadata().generationId();
        note("gained", ",\"generation\":" + generation + places(gained));
        note("joined", ",\"generation\":" + generation + ",\"member\":"
            + Json.quoted(consumer.groupMetadata().memberId()) + places(consumer.assignment()));
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
        note(what, places(partitions));
    }

    private static String places(Collection<TopicPartition> partitions) {
        List<TopicPartition> ordered = new ArrayList<>(partitions);
        ordered.sort((a, b) -> a.topic().equals(b.topic())
            ? Integer.compare(a.partition(), b.partition()) : a.topic().compareTo(b.topic()));
        return ",\"topics\":" + ordered.stream().map(partition -> Json.quoted(partition.topic())).toList()
            + ",\"places\":" + ordered.stream().map(TopicPartition::partition).toList();
    }

    /** Seconds of the machine's monotonic clock. */
    private static double now() {
        return System.nanoTime() / 1e9;
    }

    private void note(String what, String more) {
        String line = "{\"at\":" + now() + ",\"who\":" + Json.quoted(who) + ",\"what\":\"" + what + "\"" + more + "}\n";
        synchronized (Member.class) {
            try {
                log.write(line.getBytes(StandardCharsets.UTF_8));
                log.flush();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
