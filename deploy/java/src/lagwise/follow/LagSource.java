package lagwise.follow;

import java.util.Collection;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;

/** Knows the lag of a group. */
interface LagSource {
    /**
     * Records of lag, by partition; one whose lag is not known is left out.
     *
     * @throws Exception whatever kept it from asking
     */
    Map<TopicPartition, Long> lags(Collection<TopicPartition> partitions) throws Exception;
}
