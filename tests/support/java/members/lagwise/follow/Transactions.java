package lagwise.follow;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes where each record was into another topic, those of a poll in one transaction with their offsets. */
final class Transactions implements AutoCloseable {
    private final KafkaProducer<byte[], byte[]> producer;
    private final String topic;

    /** @param beforeCommit run while a transaction is complete and not yet committed */
    Transactions(Object servers, String id, String topic, Runnable beforeCommit) {
        this.topic = topic;
        producer = new KafkaProducer<>(
            Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, servers, ProducerConfig.TRANSACTIONAL_ID_CONFIG, id),
            new ByteArraySerializer(), new ByteArraySerializer()) {
            @Override
            public void commitTransaction() {
                beforeCommit.run();
                super.commitTransaction();
            }
        };
        producer.initTransactions();
    }

    /** What the docs show, all but its first lines. */
    void copy(Consumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
        if (records.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        try {
            producer.beginTransaction();
            for (ConsumerRecord<byte[], byte[]> record : records) {
                producer.send(copyOf(record));
                offsets.put(new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
        } catch (CommitFailedException rebalancing) {
            producer.abortTransaction();
            for (TopicPartition partition : records.partitions()) {
                consumer.seek(partition, records.records(partition).get(0).offset());
            }
        }
    }

    private ProducerRecord<byte[], byte[]> copyOf(ConsumerRecord<byte[], byte[]> record) {
        String where = record.partition() + ":" + record.offset();
        return new ProducerRecord<>(topic, where.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void close() {
        producer.close();
    }
}
