package lagwise.follow;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

import lagwise.control.ControlReader;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that reads plans and writes acknowledgements, next to the one that polls the consumer. Nothing that happens
 * to it reaches the consumer: it logs trouble once, tries again for ever, and is a daemon.
 */
final class ControlLink {
    private static final Logger LOG = LoggerFactory.getLogger(ControlLink.class);
    private static final long FIRST_PAUSE_MS = 500;
    private static final long LONGEST_PAUSE_MS = 15_000;
    private static final long CLOSE_WITHIN_MS = 3000;
    private static final int MOST_ACKS = 100;
    /** A reader that may describe the topic, but not read it, hears so from its first fetch; opening works. */
    private static final long SURE_AFTER_NS = 2_000_000_000L;
    /** A reader that has metadata waits in silence for brokers that are away; those that are there answer twice a second. */
    private static final long SILENT_AFTER_NS = 10_000_000_000L;
    /** To count answers is to go through all metrics of the client. */
    private static final long COUNT_EVERY_NS = 1_000_000_000L;

    private final FollowConfig config;
    private final ControlState state;
    private final BlockingQueue<Ack> acks = new LinkedBlockingQueue<>(MOST_ACKS);
    private volatile boolean isClosed;
    private volatile boolean isAway;
    private long pauseMs = FIRST_PAUSE_MS;
    private Thread thread;

    ControlLink(FollowConfig config, ControlState state) {
        this.config = config;
        this.state = state;
    }

    /** Starts the thread unless it runs; also one that an Error has ended. */
    synchronized void start() {
        if (!isClosed && (thread == null || !thread.isAlive())) {
            thread = new Thread(this::run, "lagwise-follow-" + config.group());
            thread.setDaemon(true);
            thread.start();
        }
    }

    /** Waits until a plan of that epoch was read, or the time is over; not while none can be read. */
    void awaitEpoch(long epoch, long atMostMs) {
        if (isAway) {
            return;
        }
        try {
            state.awaitEpoch(epoch, atMostMs);
        } catch (InterruptedException error) {
            // The client looks at it, and tells its user.
            Thread.currentThread().interrupt();
        }
    }

    /** Sends it soon. Lost if nothing can be sent for long: the job sees the group's metadata all the same. */
    void acknowledge(Ack ack) {
        if (!config.acksTopic().isEmpty()) {
            acks.offer(ack);
        }
    }

    /** Ends the thread soon. */
    synchronized void stop() {
        isClosed = true;
    }

    private synchronized Thread running() {
        return thread;
    }

    /** Sends what is to be acknowledged, and ends the thread; one that takes longer ends by itself. */
    void close(long atMostMs) {
        stop();
        Thread running = running();
        long waitMs = Math.min(atMostMs, CLOSE_WITHIN_MS);
        try {
            // `join(0)` waits for ever.
            if (running != null && waitMs > 0) {
                running.join(waitMs);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        try (AckWriter writer = new AckWriter(config)) {
            while (!isClosed) {
                try (ControlReader reader = new ControlReader(config.reader(), config.controlTopic(),
                    record -> state.feed(record.key(), record.value(), record.headers()), state::nameCluster)) {
                    reader.open();
                    read(reader, writer);
                } catch (RuntimeException error) {
                    noteAway(error.toString());
                    pause(writer, pauseMs);
                    pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
                }
            }
        } catch (InterruptedException error) {
            LOG.info("Following of group {} was interrupted; it goes on with the next rebalance", config.group());
        }
    }

    private void read(ControlReader reader, AckWriter writer) {
        long answers = reader.answers();
        long openedNs = System.nanoTime();
        long answeredNs = openedNs;
        long countedNs = openedNs;
        while (!isClosed) {
            reader.poll();
            send(writer);
            long nowNs = System.nanoTime();
            if (nowNs - countedNs < COUNT_EVERY_NS) {
                continue;
            }
            countedNs = nowNs;
            long answered = reader.answers();
            if (answered > answers) {
                answers = answered;
                answeredNs = nowNs;
            }
            if (nowNs - answeredNs >= SILENT_AFTER_NS) {
                noteAway("its brokers do not answer");
                openedNs = nowNs;
            } else if (isAway && answeredNs - openedNs >= SURE_AFTER_NS) {
                LOG.info("Control topic {} is there again: group {} follows", config.controlTopic(), config.group());
                isAway = false;
                pauseMs = FIRST_PAUSE_MS;
            }
        }
        send(writer);
    }

    private void noteAway(String why) {
        if (!isAway) {
            LOG.warn("Control topic {} cannot be read ({}): group {} is assigned by Kafka's sticky once its plan is over, "
                + "and consuming goes on; it is tried again until it can", config.controlTopic(), why, config.group());
        }
        isAway = true;
    }

    /** Sends acknowledgements while nothing can be read. */
    private void pause(AckWriter writer, long pauseMs) throws InterruptedException {
        long deadline = System.nanoTime() + pauseMs * 1_000_000;
        do {
            send(writer);
            Thread.sleep(ControlReader.POLL_MS);
        } while (!isClosed && System.nanoTime() < deadline);
    }

    private void send(AckWriter writer) {
        for (Ack ack = acks.poll(); ack != null; ack = acks.poll()) {
            writer.send(ack);
        }
    }
}
