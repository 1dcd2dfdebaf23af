package lagwise.follow;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import lagwise.control.DamagedException;

import org.apache.kafka.common.TopicPartition;

/** Reads Kafka's big-endian primitive types, one after the other. The buffer that it is given stays as it is. */
final class WireReader {
    private static final int LEAST_TOPIC_BYTES = 6;

    private final ByteBuffer data;

    /** @param data null is no bytes at all */
    WireReader(ByteBuffer data) {
        this.data = data == null ? ByteBuffer.allocate(0) : data.slice();
    }

    /** The version in front, which must not be negative. */
    void version() throws DamagedException {
        if (int16() < 0) {
            throw new DamagedException("negative version");
        }
    }

    byte int8() throws DamagedException {
        return needed(1).get();
    }

    short int16() throws DamagedException {
        return needed(Short.BYTES).getShort();
    }

    int int32() throws DamagedException {
        return needed(Integer.BYTES).getInt();
    }

    long int64() throws DamagedException {
        return needed(Long.BYTES).getLong();
    }

    /** UTF-8 text with an int16 length; null is damage. */
    String string() throws DamagedException {
        int length = int16();
        ByteBuffer text = needed(length).slice();
        text.limit(length);
        data.position(data.position() + length);
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(text).toString();
        } catch (CharacterCodingException error) {
            throw new DamagedException("not UTF-8");
        }
    }

    /** An array of topics, each with an array of partitions. */
    List<TopicPartition> topicPartitions() throws DamagedException {
        List<TopicPartition> partitions = new ArrayList<>();
        for (int topics = count(LEAST_TOPIC_BYTES); topics > 0; topics--) {
            String topic = string();
            for (int numbers = count(Integer.BYTES); numbers > 0; numbers--) {
                partitions.add(new TopicPartition(topic, int32()));
            }
        }
        return partitions;
    }

    /** The count of an array; one that cannot fit is refused before anything is made for it. */
    private int count(int itemBytes) throws DamagedException {
        int count = int32();
        if (count < 0 || (long) count * itemBytes > data.remaining()) {
            throw new DamagedException("an array of " + count + " items");
        }
        return count;
    }

    private ByteBuffer needed(int bytes) throws DamagedException {
        if (bytes < 0 || data.remaining() < bytes) {
            throw new DamagedException("ends too soon");
        }
        return data;
    }
}
