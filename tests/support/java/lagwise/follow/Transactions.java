package lagwise.follow;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

import org.apache.kafka.clients.consumer.Consumer;
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

    Transactions(Object servers, String id, String topic) {
        this.topic = topic;
        producer = new KafkaProducer<>(
            Map.of(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, servers, ProducerConfig.TRANSACTIONAL_ID_CONFIG, id),
            new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
    }

    void copy(Consumer<byte[], byte[]> consumer, ConsumerRecords<byte[], byte[]> records) {
        if (records.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        producer.beginTransaction();
        records.forEach(record -> {
            String where = record.partition() + ":" + record.offset();
            producer.send(new ProducerRecord<>(topic, where.getBytes(StandardCharsets.UTF_8)));
            offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        });
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        producer.commitTransaction();
    }

    @Override
    public void close() {
        producer.close();
    }
}
