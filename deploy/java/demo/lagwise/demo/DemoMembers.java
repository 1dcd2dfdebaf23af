package lagwise.demo;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import lagwise.follow.FollowingConsumer;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One group of the demo whose members are in Java, a thread each; they consume until standard input ends.
 *
 * <pre>DemoMembers TOPIC RECORDS/S,RECORDS/S,… NAME=VALUE…</pre>
 *
 * One member for each speed, and properties of their consumers. The client commits what it has handed out.
 */
public final class DemoMembers {
    private static final Duration ROUND = Duration.ofMillis(200);

    private static volatile boolean isToldToStop;

    private DemoMembers() {
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Map<String, Object> config = new HashMap<>();
        for (int n = 2; n < arguments.length; n++) {
            String[] property = arguments[n].split("=", 2);
            config.put(property[0], property[1]);
        }
        List<Thread> members = new ArrayList<>();
        for (String speed : arguments[1].split(",")) {
            members.add(member(arguments[0], Integer.parseInt(speed), members.size() + 1, config));
        }
        members.forEach(Thread::start);
        while (System.in.read() >= 0) {
            // Only its end says something.
        }
        isToldToStop = true;
        for (Thread member : members) {
            member.join();
        }
    }

    private static Thread member(String topic, int speed, int number, Map<String, Object> group) {
        Map<String, Object> config = new HashMap<>(group);
        config.put("client.id", config.get("group.id") + "-" + number);
        config.put("max.poll.records", (int) Math.max(1, speed * ROUND.toMillis() / 1000));
        Thread member = new Thread(() -> consume(topic, config));
        // A member that fails ends the process, and so the demo, which says where to look.
        member.setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        return member;
    }

    /** As many records in each round as the member has time for. */
    private static void consume(String topic, Map<String, Object> config) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (Consumer<byte[], byte[]> consumer = FollowingConsumer.create(config, bytes, bytes)) {
            consumer.subscribe(List.of(topic));
            while (!isToldToStop) {
                long begunNs = System.nanoTime();
                consumer.poll(ROUND);
                sleepUntil(begunNs + ROUND.toNanos());
            }
        }
    }

    private static void sleepUntil(long timeNs) {
        long leftMs = (timeNs - System.nanoTime()) / 1_000_000;
        try {
            Thread.sleep(Math.max(0, leftMs));
        } catch (InterruptedException stopped) {
            isToldToStop = true;
        }
    }
}
