package lagwise.broker;

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

    private final Plans plans;
    private final Counters counters;
    private volatile Thread thread;
    private boolean hasSaidNoServers;
    private boolean isAway;
    private long pauseMs = FIRST_PAUSE_MS;

    PlanReader(Plans plans, Counters counters) {
        this.plans = plans;
        this.counters = counters;
    }

    /** Starts the thread unless it runs; also one that an Error has ended. */
    void start(ReaderConfig config) {
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
                long openedNs = System.nanoTime();
                while (true) {
                    reader.poll();
                    settle.run();
                    if (!counters.isReading && System.nanoTime() - openedNs >= SURE_AFTER_NS) {
                        LOG.info("Plans are read from control topic {}", config.controlTopic());
                        isAway = false;
                        counters.isReading = true;
                    }
                }
            } catch (RetriableException | AuthorizationException error) {
                pause(config, error);
            }
        }
    }

    private void pause(ReaderConfig config, RuntimeException error) throws InterruptedException {
        pauseMs = counters.isReading ? FIRST_PAUSE_MS : pauseMs;
        counters.isReading = false;
        if (!isAway) {
            LOG.warn("Control topic {} cannot be read ({}): groups keep what they have once their plan is over; "
                + "it is tried again until it can", config.controlTopic(), words(error));
        }
        isAway = true;
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
