package lagwise.follow;

import java.util.HashMap;
import java.util.Map;

import org.apache.kafka.common.Cluster;

/**
 * A leader that does not look at what members still read, so that a partition gets a second owner. Under the name of
 * Kafka's own the client does not check what it hands out.
 */
public final class BlindAssignor extends LagwiseCooperativeAssignor {
    @Override
    public String name() {
        return "cooperative-sticky";
    }

    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription subscriptions) {
        Map<String, Subscription> blind = new HashMap<>();
        subscriptions.groupSubscription().forEach((id, subscription) ->
            blind.put(id, new Subscription(subscription.topics(), subscription.userData())));
        return super.assign(metadata, new GroupSubscription(blind));
    }
}
