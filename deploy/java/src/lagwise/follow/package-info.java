/**
 * Follows the assignments that lagwise publishes: assignors for {@code partition.assignment.strategy}, and a consumer
 * that takes a new assignment at once.
 *
 * <p>Start with {@link lagwise.follow.LagwiseAssignor} and {@link lagwise.follow.FollowingConsumer}. Inside,
 * {@code Membership} is what a member remembers, {@code Leader} what the leader decides, and {@code ControlLink} the
 * thread that reads plans and writes acknowledgements. {@code StrategyAssignor} is the base of the strategies that need no
 * control topic: KIP-169, KIP-315 and KIP-615. Nothing here needs more than kafka-clients and slf4j.
 */
package lagwise.follow;
