package lagwise.follow;

import java.util.List;
import java.util.Map;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Even counts in every topic, and within them even lag (KIP-169); eager only, as lag is another in each step.
 *
 * <pre>partition.assignment.strategy=lagwise.follow.LagAwareAssignor,org.apache.kafka.clients.consumer.RangeAssignor</pre>
 *
 * <p>The leader asks the broker for committed and log offsets, for at most two seconds. Where it has no whole answer by
 * then, Kafka's sticky assignor assigns, and the log says so. It is not sticky, and in a group it is the assignor
 * {@code lag-aware} of the Python plug-ins. Where nothing is committed, {@code auto.offset.reset=latest} is no lag.
 */
public class LagAwareAssignor extends StrategyAssignor implements Configurable {
    private static final Logger LOG = LoggerFactory.getLogger(LagAwareAssignor.class);

    private String group = "";
    private LagSource source;

    /** The client makes it, and calls {@link #configure} next. */
    public LagAwareAssignor() {
        super("lag-aware");
    }

    LagAwareAssignor(LagSource source) {
        this();
        this.source = source;
    }

    @Override
    public void configure(Map<String, ?> properties) {
        FollowConfig config = FollowConfig.of(properties);
        Object reset = properties.get(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG);
        group = config.group();
        source = new BrokerLags(config, reset == null || reset.toString().trim().equalsIgnoreCase("latest"));
    }

    @Override
    RebalanceProtocol protocol() {
        return RebalanceProtocol.EAGER;
    }

    @Override
    Target target(GroupView view, Leader.Fallback sticky) {
        List<TopicPartition> partitions = view.partitions();
        try {
            Map<TopicPartition, Long> lags = source.lags(partitions);
            long unknown = partitions.stream().filter(partition -> !lags.containsKey(partition)).count();
            if (unknown == 0) {
                return new Target(LagAware.assign(view, lags), "lag-aware");
            }
            return new Target(sticky.assign(view), "sticky: lag of " + unknown + " partitions is not known");
        } catch (InterruptedException error) {
            // The client looks at it, and tells its user.
            Thread.currentThread().interrupt();
            return new Target(sticky.assign(view), "sticky: no lag is known");
        } catch (Exception error) {
            LOG.warn("The lag of group {} cannot be fetched, so the assignment balances partition counts alone: {}", group,
                error.toString());
            return new Target(sticky.assign(view), "sticky: no lag is known");
        }
    }
}
