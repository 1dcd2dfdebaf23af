package lagwise.follow;

import java.time.Duration;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes acknowledgements. What cannot be written is logged once and forgotten, as if it were lost on the way. */
final class AckWriter implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(AckWriter.class);
    private static final Duration CLOSE_WITHIN = Duration.ofSeconds(1);

    private final FollowConfig config;
    private KafkaProducer<byte[], byte[]> producer;
    private volatile boolean hasSaidLost;

    AckWriter(FollowConfig config) {
        this.config = config;
    }

    void send(Ack ack) {
        try {
            if (producer == null) {
                // Not before there is something to say: it has a thread and connections of its own.
                producer = new KafkaProducer<>(config.writer(), new ByteArraySerializer(), new ByteArraySerializer());
            }
            // One partition, so that all records of a group keep their order.
            producer.send(new ProducerRecord<>(config.acksTopic(), 0, ack.key(), ack.value()),
                (written, error) -> notSent(error));
        } catch (RuntimeException error) {
            notSent(error);
        }
    }

    private void notSent(Exception error) {
        if (error == null) {
            hasSaidLost = false;
        } else if (!hasSaidLost) {
            hasSaidLost = true;
            LOG.warn("Acknowledgements to {} are not sent ({}): following goes on, and lagwise sees the assignment in "
                + "the group's metadata", config.acksTopic(), error.toString());
        }
    }

    @Override
    public void close() {
        if (producer != null) {
            producer.close(CLOSE_WITHIN);
        }
    }
}
