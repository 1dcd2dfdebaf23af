package lagwise.follow;

import java.util.Locale;
import java.util.Map;

import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.config.ConfigException;

/** A strategy that a group may use under either protocol; {@value #PROTOCOL} says which. */
abstract class TwoProtocolAssignor extends StrategyAssignor implements Configurable {
    /** Property of the consumer: {@code eager} or {@code cooperative}. */
    static final String PROTOCOL = "lagwise.rebalance.protocol";

    private RebalanceProtocol protocol;

    /** @param protocol where the property does not say */
    TwoProtocolAssignor(String name, RebalanceProtocol protocol) {
        super(name);
        this.protocol = protocol;
    }

    /**
     * Takes the protocol from the properties of the consumer.
     *
     * @throws ConfigException it is neither
     */
    @Override
    public void configure(Map<String, ?> properties) {
        Object given = properties.get(PROTOCOL);
        if (given != null) {
            protocol = switch (given.toString().trim().toLowerCase(Locale.ROOT)) {
                case "eager" -> RebalanceProtocol.EAGER;
                case "cooperative" -> RebalanceProtocol.COOPERATIVE;
                default -> throw new ConfigException(PROTOCOL, given, "must be eager or cooperative");
            };
        }
    }

    @Override
    RebalanceProtocol protocol() {
        return protocol;
    }
}
