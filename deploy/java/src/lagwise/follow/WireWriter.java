package lagwise.follow;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.common.TopicPartition;

/** Writes Kafka's big-endian primitive types, one after the other. */
final class WireWriter {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(bytes);

    /** One value, in a way that has no checked exception to go on with. */
    private interface Step {
        void write(DataOutputStream out) throws IOException;
    }

    WireWriter int8(int value) {
        return write(o -> o.writeByte(value));
    }

    WireWriter int16(int value) {
        return write(o -> o.writeShort(value));
    }

    WireWriter int32(int value) {
        return write(o -> o.writeInt(value));
    }

    WireWriter int64(long value) {
        return write(o -> o.writeLong(value));
    }

    /** UTF-8 text of at most 32,767 bytes, with an int16 length. */
    WireWriter string(String text) {
        byte[] data = text.getBytes(StandardCharsets.UTF_8);
        if (data.length > Short.MAX_VALUE) {
            throw new IllegalArgumentException("a text of " + data.length + " bytes does not fit into its field");
        }
        int16(data.length);
        return write(o -> o.write(data));
    }

    /** An array of topics, each with an array of partitions; both ascending, so equal sets are equal bytes. */
    WireWriter topicPartitions(Collection<TopicPartition> partitions) {
        Map<String, List<Integer>> byTopic = partitions.stream().collect(Collectors.groupingBy(
            TopicPartition::topic, TreeMap::new, Collectors.mapping(TopicPartition::partition, Collectors.toList())));
        int32(byTopic.size());
        byTopic.forEach((topic, numbers) -> {
            string(topic).int32(numbers.size());
            numbers.stream().sorted().forEach(this::int32);
        });
        return this;
    }

    ByteBuffer toBuffer() {
        return ByteBuffer.wrap(bytes.toByteArray());
    }

    private WireWriter write(Step step) {
        try {
            step.write(out);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return this;
    }
}
