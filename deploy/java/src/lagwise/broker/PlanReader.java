package lagwise.broker;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import lagwise.control.ControlReader;

import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.RetriableException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one thread of a broker that reads the control topic. Nothing that happens to it reaches the coordinator: it logs
 * trouble once, tries again for ever, and is a daemon. (Kafka's clients log on their own account.)
 */
final class PlanReader {
    private static final Logger LOG = LoggerFactory.getLogger(PlanReader.class);
    private static final long FIRST_PAUSE_MS = 500;
    private static final long LONGEST_PAUSE_MS = 15_000;
    /** A reader that may describe the topic, but not read it, hears so from its first fetch; opening works. */
    private static final long SURE_AFTER_NS = 2_000_000_000L;
    /** A reader that has metadata waits in silence for brokers that are away; those that are there answer twice a second. */
    private static final long SILENT_AFTER_NS = 10_000_000_000L;
    /** By then a broker has opened its listeners, and StorageTool, which makes the class as well, has ended. */
    private static final long UNASKED_AFTER_MS = 10_000;

    private final Plans plans;
    private final Counters counters;
    private final CountDownLatch isWanted = new CountDownLatch(1);
    private volatile Thread thread;
    private boolean hasSaidNoServers;
    private boolean isAway;
    private long pauseMs = FIRST_PAUSE_MS;

    PlanReader(Plans plans, Counters counters) {
        this.plans = plans;
        this.counters = counters;
    }

    /**
     * Starts the thread unless it runs; it reads in a while, or from the first assignment on. A broker that becomes the
     * coordinator of a group has read the group's plan by then: its first assignment may be the one that a poke asks for.
     */
    void startUnasked(ReaderConfig config) {
        if (config.namesServers()) {
            ensureRunning(config);
        }
    }

    /** Starts the thread unless it runs, also one that an Error has ended, and has it read at once. */
    void start(ReaderConfig config) {
        isWanted.countDown();
        ensureRunning(config);
    }

    private void ensureRunning(ReaderConfig config) {
        Thread running = thread;
        if (running == null || !running.isAlive()) {
            startOnce(config);
        }
    }

    private synchronized void startOnce(ReaderConfig config) {
        if (thread != null && thread.isAlive()) {
            return;
        }
        if (!config.namesServers()) {
            if (!hasSaidNoServers) {
                LOG.warn("The broker has no property {}: no plans are read, and groups of this assignor keep what they have",
                    ReaderConfig.BOOTSTRAP);
            }
            hasSaidNoServers = true;
            return;
        }
        Thread started = new Thread(() -> run(config), "lagwise-plan-reader");
        started.setDaemon(true);
        started.start();
        thread = started;
    }

    private void run(ReaderConfig config) {
        Intake intake = new Intake(config.cluster(), plans, counters);
        try {
            isWanted.await(UNASKED_AFTER_MS, TimeUnit.MILLISECONDS);
            while (true) {
                try (TopicIds ids = new TopicIds(config);
                    ControlReader reader = new ControlReader(config.reader(), config.controlTopic(),
                        record -> intake.feed(record, ids::of, System.currentTimeMillis()), intake::nameCluster)) {
                    readOn(config, reader, () -> intake.settle(ids::of, System.currentTimeMillis()), intake::begin);
                } catch (RuntimeException error) {
                    pause(config, error);
                }
            }
        } catch (InterruptedException error) {
            LOG.info("Reading of plans was interrupted; it goes on with the next assignment");
        } finally {
            counters.isReading = false;
        }
    }

    /**
     * Reads with these clients until something is thrown that does not pass by itself. New clients would log all of their
     * properties each time, and their first attempts to connect.
     */
    private void readOn(ReaderConfig config, ControlReader reader, Runnable settle, Runnable begin)
        throws InterruptedException {
        while (true) {
            try {
                begin.run();
                reader.open();
                long answers = reader.answers();
                long answeredNs = System.nanoTime();
                long openedNs = answeredNs;
                while (true) {
                    reader.poll();
                    settle.run();
                    long nowNs = System.nanoTime();
                    long answered = reader.answers();
                    if (answered > answers) {
                        answers = answered;
                        answeredNs = nowNs;
                    }
                    if (nowNs - answeredNs >= SILENT_AFTER_NS) {
                        noteAway(config, "its brokers do not answer");
                        openedNs = nowNs;
                    } else if (!counters.isReading && nowNs - openedNs >= SURE_AFTER_NS) {
                        noteReading(config);
                    }
                }
            } catch (RetriableException | AuthorizationException error) {
                pause(config, error);
            }
        }
    }

    private void noteReading(ReaderConfig config) {
        LOG.info("Plans are read from control topic {}", config.controlTopic());
        isAway = false;
        counters.isReading = true;
    }

    private void noteAway(ReaderConfig config, String why) {
        counters.isReading = false;
        if (!isAway) {
            LOG.warn("Control topic {} cannot be read ({}): groups keep what they have once their plan is over; "
                + "it is tried again until it can", config.controlTopic(), why);
        }
        isAway = true;
    }

    private void pause(ReaderConfig config, RuntimeException error) throws InterruptedException {
        pauseMs = counters.isReading ? FIRST_PAUSE_MS : pauseMs;
        noteAway(config, words(error));
        Thread.sleep(pauseMs);
        pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }

    /** The error and its innermost cause: "Failed to construct kafka consumer" says nothing of the file that is missing. */
    static String words(Throwable error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause == error ? error.toString() : error + ", because of " + cause;
    }
}
