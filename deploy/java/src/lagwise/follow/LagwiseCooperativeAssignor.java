package lagwise.follow;

/**
 * Assigns what lagwise publishes for the group, or else what Kafka's sticky assignor would: cooperative, so what stays
 * where it is is read on during a rebalance (KIP-429).
 *
 * <p>It is the same assignor as {@link LagwiseAssignor} under the same name, so a group goes from one to the other in a
 * rolling bounce. In one list only cooperative assignors may stand beside it.
 */
public class LagwiseCooperativeAssignor extends LagwiseAssignor {
    /** The client makes it, and calls {@link #configure} next. */
    public LagwiseCooperativeAssignor() {
        super(RebalanceProtocol.COOPERATIVE);
    }
}
