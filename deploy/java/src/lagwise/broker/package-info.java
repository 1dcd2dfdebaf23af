/**
 * An assignor for Kafka's brokers, {@code group.consumer.assignors}, that applies the plans lagwise publishes for groups of
 * {@code group.protocol=consumer} (KIP-848).
 *
 * <p>Start with {@link lagwise.broker.PlanAssignor}. {@code PlanReader} is the one thread of a broker that reads the
 * control topic into {@code Plans}; {@code GroupPlan} says whether it fits a group, and {@code KeptAssignment} assigns
 * where no plan does. Nothing here needs more than a broker has on its class path: Kafka's public interfaces and slf4j.
 */
package lagwise.broker;
