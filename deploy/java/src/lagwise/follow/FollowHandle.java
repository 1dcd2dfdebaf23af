package lagwise.follow;

import java.util.Optional;

import lagwise.control.ControlRecord;

/** What a {@link FollowingConsumer} knows of the assignor that its consumer has made. */
final class FollowHandle {
    private Membership membership;
    private ControlLink link;

    void attach(Membership newMembership, ControlLink newLink) {
        membership = newMembership;
        link = newLink;
    }

    boolean isAttached() {
        return membership != null;
    }

    /** The plan for which the group should rejoin now; says so once for each reason. */
    Optional<ControlRecord> planToRejoinFor() {
        return membership.planToRejoinFor(System.currentTimeMillis());
    }

    /** The consumer has no partitions any more, and its assignor was not told. */
    void lost() {
        membership.lost();
    }

    void close(long atMostMs) {
        link.close(atMostMs);
    }
}
