package lagwise.follow;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;

import lagwise.control.DamagedException;

import org.apache.kafka.common.TopicPartition;

/**
 * User data of a subscription: what a member claims when it joins.
 *
 * <pre>int16 version | claims [topic string | partitions [int32]] | generation int32 | plan epoch int64 | held int8</pre>
 *
 * @param claims what it had in its last generation
 * @param generation that generation, -1 for none
 * @param planEpoch newest epoch of a plan that it has read, 0 for none
 * @param held whether it still reads what it claims, that is, is cooperative
 */
record SubscriptionData(Collection<TopicPartition> claims, int generation, long planEpoch, boolean held) {
    static final int NO_GENERATION = -1;

    /** A member without a past. */
    static final SubscriptionData UNKNOWN = new SubscriptionData(List.of(), NO_GENERATION, 0, false);

    ByteBuffer encode() {
        return new WireWriter().int16(0).topicPartitions(claims).int32(generation).int64(planEpoch)
            .int8(held ? 1 : 0).toBuffer();
    }

    /** What the bytes say; those that cannot be read: {@link #UNKNOWN}. Any member can send any bytes. */
    static SubscriptionData decode(ByteBuffer userData) {
        WireReader reader = new WireReader(userData);
        try {
            reader.version();
            return new SubscriptionData(
                reader.topicPartitions(),
                Math.max(reader.int32(), NO_GENERATION),
                Math.max(reader.int64(), 0),
                reader.int8() != 0);
        } catch (DamagedException error) {
            return UNKNOWN;
        }
    }
}
