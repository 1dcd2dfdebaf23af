package lagwise.follow;

import java.nio.ByteBuffer;

import lagwise.control.DamagedException;

/**
 * User data of an assignment: what the leader tells one member.
 *
 * <pre>int16 version | epoch int64 | outcome int8 | why string</pre>
 *
 * @param epoch of the newest plan that the leader took into account, 0 for none
 * @param why one sentence where the plan was refused
 */
record AssignmentData(long epoch, Outcome outcome, String why) {

    /** What became of the plan with this member; the ordinal is the number on the wire. */
    enum Outcome { SILENT, APPLIED, REFUSED }

    ByteBuffer encode() {
        return new WireWriter().int16(0).int64(epoch).int8(outcome.ordinal()).string(why).toBuffer();
    }

    /** What the bytes say; those that cannot be read say nothing. */
    static AssignmentData decode(ByteBuffer userData) {
        WireReader reader = new WireReader(userData);
        try {
            reader.version();
            long epoch = Math.max(reader.int64(), 0);
            int outcome = reader.int8();
            String why = reader.string();
            boolean isKnown = outcome >= 0 && outcome < Outcome.values().length;
            return new AssignmentData(epoch, isKnown ? Outcome.values()[outcome] : Outcome.SILENT, why);
        } catch (DamagedException error) {
            return new AssignmentData(0, Outcome.SILENT, "");
        }
    }
}
