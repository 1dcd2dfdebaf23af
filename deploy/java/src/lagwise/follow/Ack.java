package lagwise.follow;

import java.nio.charset.StandardCharsets;

import lagwise.control.Instants;
import lagwise.control.Json;

/**
 * An acknowledgement: what a member says of a plan.
 *
 * @param kind {@code applied}, {@code refused} or {@code void}
 * @param generation Kafka's, after the plan was assigned
 * @param why null where the kind has none
 * @param atMs by the clock of the member, for people
 */
record Ack(String kind, String cluster, String group, int generation, long epoch, String member, String why,
    long atMs) {

    /** The key, to the byte: compaction compares bytes. */
    byte[] key() {
        return ("{\"cluster\":" + Json.quoted(cluster) + ",\"group\":" + Json.quoted(group) + ",\"kind\":\"" + kind
            + "\",\"id\":" + Json.quoted(member) + "}").getBytes(StandardCharsets.UTF_8);
    }

    byte[] value() {
        String reason = why == null ? "" : ",\"why\":" + Json.quoted(why);
        return ("{\"v\":1,\"kind\":\"" + kind + "\",\"group\":" + Json.quoted(group) + ",\"gen\":" + generation
            + ",\"epoch\":" + epoch + ",\"member\":" + Json.quoted(member) + reason + ",\"at\":\""
            + Instants.format(atMs) + "\"}").getBytes(StandardCharsets.UTF_8);
    }
}
