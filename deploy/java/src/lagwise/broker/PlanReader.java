package lagwise.broker;

import lagwise.control.ControlReader;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one thread of a broker that reads the control topic. Nothing that happens to it reaches the coordinator: it logs
 * trouble once, tries again for ever, and is a daemon.
 */
final class PlanReader {
    private static final Logger LOG = LoggerFactory.getLogger(PlanReader.class);
    private static final long FIRST_PAUSE_MS = 500;
    private static final long LONGEST_PAUSE_MS = 15_000;

    private final Plans plans;
    private final Counters counters;
    private volatile Thread thread;
    private boolean hasSaidNoServers;
    private boolean isAway;

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
        long pauseMs = FIRST_PAUSE_MS;
        Intake intake = new Intake(config.cluster(), plans, counters);
        try {
            while (true) {
                try {
                    read(config, intake);
                } catch (RuntimeException error) {
                    pauseMs = counters.isReading ? FIRST_PAUSE_MS : pauseMs;
                    counters.isReading = false;
                    if (!isAway) {
                        LOG.warn("Control topic {} cannot be read ({}): groups keep what they have once their plan is over; "
                            + "it is tried again until it can", config.controlTopic(), error.toString());
                    }
                    isAway = true;
                    Thread.sleep(pauseMs);
                    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
                }
            }
        } catch (InterruptedException error) {
            LOG.info("Reading of plans was interrupted; it goes on with the next assignment");
        } finally {
            counters.isReading = false;
        }
    }

    /** Reads from the beginning, until something is thrown. */
    private void read(ReaderConfig config, Intake intake) {
        intake.begin();
        try (TopicIds ids = new TopicIds(config);
            ControlReader reader = new ControlReader(config.reader(), config.controlTopic(),
                record -> intake.feed(record, ids::of, System.currentTimeMillis()), intake::nameCluster)) {
            reader.open();
            LOG.info("Plans are read from control topic {}", config.controlTopic());
            isAway = false;
            counters.isReading = true;
            while (true) {
                reader.poll();
                intake.settle(ids::of, System.currentTimeMillis());
            }
        }
    }
}
