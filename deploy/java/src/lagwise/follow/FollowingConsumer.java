package lagwise.follow;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Collection;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A {@link KafkaConsumer} that takes a plan as soon as it is published: it makes its group rebalance between two polls.
 * It must list {@link LagwiseAssignor} or {@link LagwiseCooperativeAssignor}.
 *
 * <pre>try (Consumer&lt;String, String&gt; consumer = FollowingConsumer.create(properties)) { … }</pre>
 *
 * <p>It is a proxy and no class that implements {@link Consumer}: that interface gains and loses methods from release
 * to release, and a class compiled against 3.9 would lack those of 4.x.
 */
public final class FollowingConsumer implements InvocationHandler {
    private static final Logger LOG = LoggerFactory.getLogger(FollowingConsumer.class);

    /** A plan is noticed so soon during a longer poll. */
    private static final long SLICE_NS = 100_000_000;

    private final Consumer<?, ?> consumer;
    private final FollowHandle handle;

    private FollowingConsumer(Consumer<?, ?> consumer, FollowHandle handle) {
        this.consumer = consumer;
        this.handle = handle;
    }

    /**
     * A consumer of these properties.
     *
     * @throws KafkaException what {@link KafkaConsumer} throws
     */
    public static <K, V> Consumer<K, V> create(Properties properties) {
        Map<String, Object> config = new HashMap<>();
        properties.stringPropertyNames().forEach(name -> config.put(name, properties.getProperty(name)));
        properties.forEach((name, value) -> config.put(name.toString(), value));
        return create(config);
    }

    /**
     * A consumer of these properties.
     *
     * @throws KafkaException what {@link KafkaConsumer} throws
     */
    public static <K, V> Consumer<K, V> create(Map<String, Object> config) {
        return create(config, null, null);
    }

    /**
     * A consumer of these properties, with deserializers of its own.
     *
     * @throws KafkaException what {@link KafkaConsumer} throws
     */
    public static <K, V> Consumer<K, V> create(
        Map<String, Object> config, Deserializer<K> keyDeserializer, Deserializer<V> valueDeserializer) {
        return create(config, withHandle -> new KafkaConsumer<>(withHandle, keyDeserializer, valueDeserializer));
    }

    /**
     * A consumer that {@code make} makes of the properties it is given, for those who wrap theirs. Its {@code poll} must
     * return {@link ConsumerRecords#empty()} when its time is over, as Kafka's does: any other empty result ends a poll.
     *
     * @throws KafkaException what {@code make} throws
     */
    public static <K, V> Consumer<K, V> create(
        Map<String, Object> config, Function<Map<String, Object>, Consumer<K, V>> make) {
        FollowHandle handle = new FollowHandle();
        Map<String, Object> withHandle = new HashMap<>(config);
        withHandle.put(FollowConfig.HANDLE, handle);
        Consumer<K, V> consumer = make.apply(withHandle);
        if (!handle.isAttached()) {
            LOG.warn("partition.assignment.strategy lists no assignor of lagwise: the consumer follows no plans");
            return consumer;
        }
        @SuppressWarnings("unchecked")  // a proxy has no type parameters
        Consumer<K, V> following = (Consumer<K, V>) Proxy.newProxyInstance(
            FollowingConsumer.class.getClassLoader(), new Class<?>[] {Consumer.class},
            new FollowingConsumer(consumer, handle));
        return following;
    }

    /** A call of the consumer; not for users. */
    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        return switch (method.getName()) {
            case "poll" -> arguments[0] instanceof Duration timeout ? poll(timeout) : pollOnce(method, arguments);
            case "subscribe" -> subscribe(method, arguments);
            case "unsubscribe" -> {
                Object result = call(method, arguments);
                handle.lost();
                yield result;
            }
            case "close" -> close(method, arguments);
            case "equals" -> proxy == arguments[0];
            case "hashCode" -> System.identityHashCode(proxy);
            default -> call(method, arguments);
        };
    }

    private ConsumerRecords<?, ?> poll(Duration timeout) {
        long begun = System.nanoTime();
        long wantedNs = nanoseconds(timeout);
        while (true) {
            rejoinIfWanted();
            long leftNs = wantedNs - (System.nanoTime() - begun);
            ConsumerRecords<?, ?> records = consumer.poll(timeout.isNegative() ? timeout : slice(leftNs));
            // An empty result other than this constant means that the position advanced, past markers of transactions (KIP-1094).
            if (records != ConsumerRecords.empty() || leftNs <= SLICE_NS) {
                return records;
            }
        }
    }

    /** Whole milliseconds, as a consumer counts: a poll never ends before its time. */
    private static Duration slice(long leftNs) {
        return Duration.ofMillis((Math.max(0, Math.min(leftNs, SLICE_NS)) + 999_999) / 1_000_000);
    }

    /** The poll of Kafka 3.9 that takes milliseconds. */
    private Object pollOnce(Method method, Object[] arguments) throws Throwable {
        rejoinIfWanted();
        return call(method, arguments);
    }

    private void rejoinIfWanted() {
        handle.planToRejoinFor().ifPresent(plan -> {
            LOG.info("Joining again for plan {}", plan.epoch());
            consumer.enforceRebalance("lagwise: plan " + plan.epoch());
        });
    }

    private Object subscribe(Method method, Object[] arguments) throws Throwable {
        Object topics = arguments[0];
        ConsumerRebalanceListener listener =
            arguments.length > 1 && arguments[1] instanceof ConsumerRebalanceListener given ? given : null;
        if (arguments.length > 1 && listener == null) {
            return call(method, arguments);
        }
        if (topics instanceof Collection<?>) {
            @SuppressWarnings("unchecked")  // the interface has no other collection here
            Collection<String> names = (Collection<String>) topics;
            consumer.subscribe(names, new LossListener(listener));
            return null;
        }
        if (topics instanceof Pattern pattern) {
            consumer.subscribe(pattern, new LossListener(listener));
            return null;
        }
        return call(method, arguments);
    }

    private Object close(Method method, Object[] arguments) throws Throwable {
        long begun = System.nanoTime();
        boolean isClosed = true;
        try {
            return call(method, arguments);
        } catch (ConcurrentModificationException | IllegalArgumentException error) {
            // Refused, since another thread uses the consumer, or the time is negative: the consumer goes on.
            isClosed = false;
            throw error;
        } finally {
            if (isClosed) {
                long allowedNs = arguments != null && arguments[0] instanceof Duration timeout
                    ? nanoseconds(timeout) : Long.MAX_VALUE;
                handle.close(Math.max(0, allowedNs - (System.nanoTime() - begun)) / 1_000_000);
            }
        }
    }

    private Object call(Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(consumer, arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    private static long nanoseconds(Duration timeout) {
        try {
            return timeout.toNanos();
        } catch (ArithmeticException error) {
            return Long.MAX_VALUE;
        }
    }

    /** Tells the assignor of a loss, which the client does not. */
    private final class LossListener implements ConsumerRebalanceListener {
        private final ConsumerRebalanceListener user;

        /** @param user null for none */
        LossListener(ConsumerRebalanceListener user) {
            this.user = user;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            if (user != null) {
                user.onPartitionsAssigned(partitions);
            }
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (user != null) {
                user.onPartitionsRevoked(partitions);
            }
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            handle.lost();
            if (user != null) {
                user.onPartitionsLost(partitions);
            }
        }
    }
}
