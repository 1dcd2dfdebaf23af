package lagwise.follow;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import lagwise.control.ControlRecord;
import lagwise.control.DamagedException;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupAssignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.internals.RecordHeaders;

/** What a following consumer and its settings promise, without a broker: one line for each check, its name and "ok". */
public final class Checks {
    private static final TopicPartition PLACE = new TopicPartition("t", 0);
    private static final int GENERATION = 7;

    private final List<String> calls = new ArrayList<>();
    private final Map<String, Object> config = new HashMap<>(Map.of("group.id", "g", "lagwise.cluster", "local"));
    private LagwiseAssignor assignor;
    private ConsumerRebalanceListener given;
    private int emptyPolls;
    private boolean isPastMarkers;
    private boolean isUsedElsewhere;

    public static void main(String[] arguments) throws ReflectiveOperationException {
        for (Method check : Checks.class.getDeclaredMethods()) {
            if (Modifier.isPublic(check.getModifiers()) && !Modifier.isStatic(check.getModifiers())) {
                String answer = "ok";
                try {
                    check.invoke(new Checks());
                } catch (InvocationTargetException error) {
                    error.getCause().printStackTrace();
                    answer = error.getCause().toString();
                }
                System.out.println(check.getName() + " " + answer);
            }
        }
    }

    public void longPollReturnsWithTheFirstRecords() {
        emptyPolls = 3;
        check(!following().poll(Duration.ofSeconds(Long.MAX_VALUE)).isEmpty(), "records");
        check(calls.stream().filter("poll"::equals).count() == 4, calls);
    }

    public void pollReturnsWhenThePositionMovesOnWithoutRecords() {
        isPastMarkers = true;
        Consumer<byte[], byte[]> following = following();
        check(following.poll(Duration.ofSeconds(Long.MAX_VALUE)).isEmpty(), "nothing");
        check(calls.stream().filter("poll"::equals).count() == 1, calls);
    }

    public void pollWithoutRecordsEndsInTime() {
        emptyPolls = 1000;
        Consumer<byte[], byte[]> following = following();
        check(following.poll(Duration.ZERO).isEmpty(), "nothing");
        long begun = System.nanoTime();
        check(following.poll(Duration.ofMillis(250)).isEmpty(), "nothing");
        long tookMs = (System.nanoTime() - begun) / 1_000_000;
        check(tookMs >= 250 && tookMs < 2000, tookMs);
    }

    public void planForThisGenerationMakesTheGroupRebalanceOnce() throws DamagedException {
        Consumer<byte[], byte[]> following = following();
        ControlState state = new ControlState("local", "g");
        Membership membership = new Membership(state, false);
        ((FollowHandle) config.get(FollowConfig.HANDLE)).attach(membership, new ControlLink(FollowConfig.of(config), state));
        membership.assigned(new Assignment(List.of(PLACE)), GENERATION, "m", 0);
        following.poll(Duration.ZERO);
        check(!calls.contains("enforceRebalance"), calls);
        check(state.feed(ControlRecord.encodeKey("local", "g"), plan(), new RecordHeaders())
            == ControlState.Fed.NEWER, "the plan is read");
        following.poll(Duration.ZERO);
        following.poll(Duration.ZERO);
        check(calls.stream().filter("enforceRebalance"::equals).count() == 1, calls);
    }

    public void pollsDoNotWalkAPlanThatIsNotJoinedFor() {
        int members = 100;
        int each = 500;
        for (int moved : new int[] {0, 1}) {
            StringBuilder byId = new StringBuilder();
            for (int number = 0; number < members; number++) {
                String base = number * each + "-" + (number * each + each - 1);
                // What differs comes last.
                String target = number == members - 1 ? number * each + "-" + (number * each + each - 1 - moved) : base;
                byId.append(number == 0 ? "" : ",").append("\"m").append(number).append("\":").append(member(base, target));
            }
            ControlState state = new ControlState("local", "g");
            Membership membership = new Membership(state, false);
            // A plan that moves something is for an earlier generation.
            membership.assigned(new Assignment(List.of(PLACE)), GENERATION + moved, "m0", 0);
            check(state.feed(ControlRecord.encodeKey("local", "g"), plan(byId.toString()), new RecordHeaders())
                == ControlState.Fed.NEWER, "the plan is read");
            long begun = System.nanoTime();
            for (int poll = 0; poll < 1000; poll++) {
                check(membership.planToRejoinFor(0).isEmpty(), "no rebalance");
            }
            long tookMs = (System.nanoTime() - begun) / 1_000_000;
            check(tookMs < 500, tookMs + " ms, moved " + moved);
        }
    }

    public void planForAGroupThatTheBrokerAssignsIsNotFollowedAndCounts() {
        for (String protocol : new String[] {"consumer", "share", "classic"}) {
            ControlState state = new ControlState("local", "g");
            String plan = new String(plan(), StandardCharsets.UTF_8)
                .replace("\"dry_run\":false,", "\"dry_run\":false,\"group_protocol\":\"" + protocol + "\",");
            check(state.feed(ControlRecord.encodeKey("local", "g"), plan.getBytes(StandardCharsets.UTF_8), new RecordHeaders())
                == ControlState.Fed.NEWER, protocol);
            check(state.newest(0).plan().isPresent() == protocol.equals("classic") && state.epoch() == 1, protocol);
        }
    }

    public void whatTheConsumerThrowsIsThrownAsItIs() {
        Consumer<byte[], byte[]> following = following();
        try {
            following.seek(PLACE, -1);
        } catch (WakeupException error) {
            return;
        }
        throw new AssertionError("nothing was thrown");
    }

    public void lossIsToldToTheAssignorAndToTheUser() {
        Consumer<byte[], byte[]> following = following();
        List<String> heard = new ArrayList<>();
        following.subscribe(List.of("t"), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                heard.add("assigned");
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                heard.add("revoked");
            }
        });
        assign();
        check(SubscriptionData.decode(assignor.subscriptionUserData(Set.of("t"))).held(), "it holds what it was given");
        given.onPartitionsAssigned(List.of(PLACE));
        given.onPartitionsRevoked(List.of());
        given.onPartitionsLost(List.of(PLACE));
        SubscriptionData data = SubscriptionData.decode(assignor.subscriptionUserData(Set.of("t")));
        check(!data.held() && data.claims().equals(List.of(PLACE)), data);
        // A listener without onPartitionsLost is told of a revocation, as the client does it.
        check(heard.equals(List.of("assigned", "revoked", "revoked")), heard);
        following.close();
    }

    public void memberThatUnsubscribesHoldsNothing() {
        Consumer<byte[], byte[]> following = following();
        following.subscribe(List.of("t"));
        assign();
        following.unsubscribe();
        check(!SubscriptionData.decode(assignor.subscriptionUserData(Set.of("t"))).held(), "nothing is held");
        following.close();
    }

    public void closeEndsTheThread() {
        Consumer<byte[], byte[]> following = following();
        config.put("bootstrap.servers", "127.0.0.1:1");
        assignor.subscriptionUserData(Set.of("t"));
        check(isReading(), "a reader");
        following.close();
        check(calls.contains("close") && !isReading(), calls);
        assignor.subscriptionUserData(Set.of("t"));
        check(!isReading(), "nothing starts it again");
    }

    public void closeTakesNoLongerThanItMay() throws IOException, InterruptedException {
        try (ServerSocket silent = new ServerSocket(0, 0, InetAddress.getLoopbackAddress())) {
            config.put("bootstrap.servers", "127.0.0.1:" + silent.getLocalPort());
            Consumer<byte[], byte[]> following = following();
            assignor.subscriptionUserData(Set.of("t"));
            // The thread waits ten seconds for an answer.
            silent.accept();
            long begun = System.nanoTime();
            following.close(Duration.ZERO);
            long tookMs = (System.nanoTime() - begun) / 1_000_000;
            check(tookMs < 1000, tookMs);
            Thread reader = reader().orElseThrow();
            reader.interrupt();
            reader.join(5000);
        }
        check(!isReading(), "the thread does not start again");
    }

    public void closeThatIsRefusedEndsNothing() {
        Consumer<byte[], byte[]> following = following();
        config.put("bootstrap.servers", "127.0.0.1:1");
        assignor.subscriptionUserData(Set.of("t"));
        isUsedElsewhere = true;
        try {
            following.close();
            throw new AssertionError("nothing was thrown");
        } catch (ConcurrentModificationException error) {
            check(isReading(), "a reader of a consumer that another thread polls");
        }
        isUsedElsewhere = false;
        try {
            following.close(Duration.ofMillis(-1));
            throw new AssertionError("nothing was thrown");
        } catch (IllegalArgumentException error) {
            assignor.subscriptionUserData(Set.of("t"));
            check(calls.contains("close") && isReading(), "a reader of a consumer that goes on");
        }
        following.close();
        check(!isReading(), "no reader");
    }

    public void threadEndsWhenTheAssignorIsCollected() throws InterruptedException {
        assignor = new LagwiseAssignor();
        assignor.configure(config);
        assignor.subscriptionUserData(Set.of("t"));
        check(isReading(), "a reader");
        assignor = null;
        for (int round = 0; isReading() && round < 100; round++) {
            System.gc();
            Thread.sleep(50);
        }
        check(!isReading(), "a reader of nobody");
    }

    public void consumerWithoutAnAssignorOfLagwiseIsGivenAsItIs() {
        Consumer<byte[], byte[]> plain = fake();
        check(FollowingConsumer.create(config, (Map<String, Object> any) -> plain) == plain, "the same");
    }

    public void linkHasTheConnectionOfTheConsumerAndNothingElseOfIt() {
        config.putAll(Map.of("bootstrap.servers", "b:1", "security.protocol", "SASL_SSL", "sasl.jaas.config", "j",
            "ssl.truststore.location", "/t", "our.vault", "v", "transactional.id", "x", "client.id", "c",
            "group.instance.id", "i", "max.poll.records", "1", "interceptor.classes", "X"));
        for (Map<String, Object> link : List.of(FollowConfig.of(config).reader(), FollowConfig.of(config).writer())) {
            check(link.keySet().containsAll(Set.of("bootstrap.servers", "security.protocol", "sasl.jaas.config",
                "ssl.truststore.location", "our.vault")), link);
            check(link.get("client.id").equals("c-lagwise"), link);
            for (String own : List.of("group.id", "group.instance.id", "max.poll.records", "interceptor.classes",
                "lagwise.cluster", FollowConfig.HANDLE)) {
                check(!link.containsKey(own), own);
            }
        }
        check(!FollowConfig.of(config).writer().containsKey("transactional.id"), "the producer is no part of a transaction");
    }

    public void lagAwareLeaderWithoutABrokerAssignsBySticky() {
        config.put("bootstrap.servers", "127.0.0.1:1");
        LagAwareAssignor lagAware = new LagAwareAssignor();
        lagAware.configure(config);
        long begun = System.nanoTime();
        GroupAssignment assigned = lagAware.assign(Replay.cluster(Map.of("t", 2)), new GroupSubscription(Map.of(
            "m", new Subscription(List.of("t")), "n", new Subscription(List.of("t")))));
        long tookMs = (System.nanoTime() - begun) / 1_000_000;
        check(assigned.groupAssignment().values().stream().allMatch(one -> one.partitions().size() == 1), assigned);
        check(tookMs >= 1500 && tookMs < 3500, tookMs);
    }

    private Consumer<byte[], byte[]> following() {
        return FollowingConsumer.create(config, (Map<String, Object> withHandle) -> {
            config.putAll(withHandle);
            assignor = new LagwiseCooperativeAssignor();
            assignor.configure(withHandle);
            return fake();
        });
    }

    @SuppressWarnings({"unchecked", "removal"})
    private void assign() {
        assignor.onAssignment(new Assignment(List.of(PLACE)), new ConsumerGroupMetadata("g", GENERATION, "m",
            Optional.empty()));
    }

    /** A consumer that notes its calls, and has a record after some polls. */
    @SuppressWarnings("unchecked")
    private Consumer<byte[], byte[]> fake() {
        return (Consumer<byte[], byte[]>) Proxy.newProxyInstance(
            Checks.class.getClassLoader(), new Class<?>[] {Consumer.class}, (proxy, method, arguments) -> {
                calls.add(method.getName());
                switch (method.getName()) {
                    case "poll":
                        return polled((Duration) arguments[0]);
                    case "subscribe":
                        given = (ConsumerRebalanceListener) arguments[1];
                        return null;
                    case "seek":
                        throw new WakeupException();
                    case "close":
                        if (isUsedElsewhere) {
                            throw new ConcurrentModificationException();
                        }
                        if (arguments != null && ((Duration) arguments[0]).isNegative()) {
                            throw new IllegalArgumentException();
                        }
                        return null;
                    default:
                        return null;
                }
            });
    }

    @SuppressWarnings("deprecation")
    private ConsumerRecords<byte[], byte[]> polled(Duration timeout) throws InterruptedException {
        if (emptyPolls-- > 0 || timeout.isZero()) {
            Thread.sleep(timeout.toMillis());
            return ConsumerRecords.empty();
        }
        if (isPastMarkers) {
            isPastMarkers = false;
            return new ConsumerRecords<>(Map.of());
        }
        return new ConsumerRecords<>(Map.of(PLACE, List.of(new ConsumerRecord<>("t", 0, 0, null, null))));
    }

    private static boolean isReading() {
        return reader().isPresent();
    }

    private static Optional<Thread> reader() {
        return Thread.getAllStackTraces().keySet().stream().filter(one -> one.getName().equals("lagwise-follow-g"))
            .findAny();
    }

    private static byte[] plan() {
        return plan("\"m\":" + member("0", null) + ",\"n\":" + member(null, "0"));
    }

    /** Partitions are ranges of t, null for none. */
    private static String member(String base, String target) {
        return "{\"instance\":null,\"client\":\"\",\"host\":\"\",\"base\":" + ofTopic(base) + ",\"target\":" + ofTopic(target) + "}";
    }

    private static String ofTopic(String ranges) {
        return ranges == null ? "{}" : "{\"t\":\"" + ranges + "\"}";
    }

    private static byte[] plan(String members) {
        return ("{\"schema\":1,\"cluster\":\"local\",\"group\":\"g\",\"epoch\":1,\"strategy\":\"s\",\"dry_run\":false,"
            + "\"created_at\":\"2026-01-31T12:00:00Z\",\"valid_until\":\"9999-01-31T12:00:00Z\","
            + "\"base\":{\"generation\":" + GENERATION + ",\"protocol\":\"lagwise\"},\"members\":{" + members + "},\"moves\":[],"
            + "\"why\":{\"drain_s_before\":null,\"drain_s_after\":1,\"drain_s_bound\":1.5,\"lag\":0}}")
            .getBytes(StandardCharsets.UTF_8);
    }

    private static void check(boolean holds, Object seen) {
        if (!holds) {
            throw new AssertionError(String.valueOf(seen));
        }
    }
}
