package lagwise.broker;

import static lagwise.broker.Checks.check;
import static lagwise.broker.Checks.same;
import static lagwise.broker.Checks.text;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import javax.management.JMException;
import javax.management.ObjectName;

/** What there is once in a process, however often Kafka makes the class. */
public final class ProcessChecks {
    private static final int INSTANCES = 9;

    private final FakeGroup group = new FakeGroup().topic("t", 2).member("a", "t").member("b", "t");

    private static List<PlanAssignor> configured(Map<String, ?> broker) {
        List<PlanAssignor> instances = new ArrayList<>();
        for (int number = 0; number < INSTANCES; number++) {
            PlanAssignor one = new PlanAssignor();
            one.configure(broker);
            same(one.name(), "lagwise");
            instances.add(one);
        }
        return instances;
    }

    private static long readers() {
        return Thread.getAllStackTraces().keySet().stream().filter(one -> one.getName().equals("lagwise-plan-reader")).count();
    }

    public void oneThreadReadsForAllInstancesAndNoneBeforeTheFirstAssignment() throws JMException {
        for (PlanAssignor one : configured(Map.of())) {
            same(text(one.assign(group, group)), "{a={t=[0]}, b={t=[1]}}");
        }
        List<PlanAssignor> instances = configured(Map.of("lagwise.bootstrap.servers", "127.0.0.1:1"));
        same(readers(), 0L);
        for (PlanAssignor one : instances) {
            // Nobody answers there, and groups are assigned all the same.
            same(text(one.assign(group, group)), "{a={t=[0]}, b={t=[1]}}");
            same(readers(), 1L);
        }
        ObjectName name = new ObjectName("lagwise.broker:type=PlanAssignor");
        same(ManagementFactory.getPlatformMBeanServer().getAttribute(name, "KeptAssignments"), 2L * INSTANCES);
        same(ManagementFactory.getPlatformMBeanServer().getAttribute(name, "Reading"), false);
    }

    public void brokerStartsTheReaderWithoutAnAssignmentAndControllersDoNot() throws InterruptedException {
        PlanAssignor one = new FakeTopic().assignor();
        String servers = "lagwise.bootstrap.servers";
        long before = readers();
        one.configure(Map.of("process.roles", "controller", servers, "127.0.0.1:1"));
        one.configure(Map.of("process.roles", "broker"));
        same(readers(), before);
        Set<Thread> others = Thread.getAllStackTraces().keySet();
        for (int number = 0; number < INSTANCES; number++) {
            one.configure(Map.of("process.roles", "broker,controller", servers, "127.0.0.1:1"));
        }
        same(readers(), before + 1);
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (!others.contains(thread) && thread.getName().equals("lagwise-plan-reader")) {
                thread.interrupt();
                thread.join();
            }
        }
    }

    public void readerThatCannotBeMadeHurtsNobody() throws InterruptedException {
        FakeTopic topic = new FakeTopic();
        PlanAssignor one = topic.assignor();
        one.configure(Map.of("lagwise.bootstrap.servers", "no port", "lagwise.ssl.truststore.location", "/not/there"));
        for (int number = 0; number < INSTANCES; number++) {
            same(text(one.assign(group, group)), "{a={t=[0]}, b={t=[1]}}");
        }
        same(topic.counters.getFailures(), 0L);
    }

    public void readerKeepsItsClientWhileBrokersDoNotAnswer() throws JMException, InterruptedException {
        Plans plans = new Plans();
        String client = "lagwise-check-of-the-reader";
        new PlanReader(plans, new Counters(plans::size)).start(ReaderConfig.of(Map.of("lagwise.bootstrap.servers",
            "127.0.0.1:1", "lagwise.client.id", client, "lagwise.default.api.timeout.ms", "300")));
        ObjectName name = new ObjectName("kafka.consumer:type=app-info,id=" + client);
        Set<Object> starts = new HashSet<>();
        // One attempt takes 0.3 s, and the pauses after the first two 1.5 s.
        long deadline = System.nanoTime() + 3_000_000_000L;
        while (System.nanoTime() < deadline) {
            if (ManagementFactory.getPlatformMBeanServer().isRegistered(name)) {
                starts.add(ManagementFactory.getPlatformMBeanServer().getAttribute(name, "StartTimeMs"));
            }
            Thread.sleep(10);
        }
        same(starts.size(), 1);
    }

    public void troubleIsLoggedWithItsInnermostCause() {
        same(PlanReader.words(new IllegalStateException("Failed", new IllegalArgumentException("so", new RuntimeException("no file")))),
            "java.lang.IllegalStateException: Failed, because of java.lang.RuntimeException: no file");
        same(PlanReader.words(new IllegalStateException("Failed")), "java.lang.IllegalStateException: Failed");
    }

    public void readerHasThePropertiesWithThePrefixAndNoneThatWouldMakeItAMember() {
        ReaderConfig config = ReaderConfig.of(Map.of("node.id", "3", "lagwise.bootstrap.servers", "b:1",
            "lagwise.control.topic", "c", "lagwise.cluster", "local", "lagwise.sasl.jaas.config", "j",
            "lagwise.security.protocol", "SASL_SSL", "lagwise.group.id", "g", "ssl.keystore.location", "/of/the/broker",
            "lagwise.max.poll.records", "10"));
        same(config.controlTopic() + " " + config.cluster(), "c local");
        for (Map<String, Object> client : List.of(config.reader(), config.admin())) {
            check(client.keySet().containsAll(Set.of("bootstrap.servers", "sasl.jaas.config", "security.protocol")), client);
            same(client.get("client.id"), "lagwise-broker-assignor-3");
            same(client.get("reconnect.backoff.ms") + " " + client.get("reconnect.backoff.max.ms"), "5000 15000");
            for (String name : List.of("group.id", "ssl.keystore.location", "control.topic", "cluster")) {
                check(!client.containsKey(name), name);
            }
        }
        check(!config.admin().containsKey("max.poll.records"), config.admin());
        same(config.reader().get("isolation.level"), "read_committed");
    }
}
