package lagwise.broker;

/** What JMX shows of the assignor of a broker, as {@code lagwise.broker:type=PlanAssignor}. */
public interface PlanAssignorMXBean {

    /** Plans that the broker would follow now. */
    int getPlans();

    /** Whether the control topic is read: without an error for 2 s, and with an answer within 10 s. */
    boolean isReading();

    /** Assignments that a plan gave. */
    long getPlannedAssignments();

    /** Assignments that kept what there was, since no plan was there or fitted. */
    long getKeptAssignments();

    /** Of those, how many had a plan that did not fit. */
    long getMisfits();

    /** Assignments that failed, and left all as it was; the broker's log names the first. */
    long getFailures();

    /** Records of the control topic that were damaged, newer than this version, or for topics that are not there. */
    long getIgnoredRecords();
}
