package lagwise.broker;

import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntSupplier;

/** What the assignor of this broker has done, for JMX. */
final class Counters implements PlanAssignorMXBean {
    final LongAdder planned = new LongAdder();
    final LongAdder kept = new LongAdder();
    final LongAdder misfits = new LongAdder();
    final LongAdder failures = new LongAdder();
    final LongAdder ignored = new LongAdder();
    volatile boolean isReading;

    private final IntSupplier plans;

    /** @param plans how many there are */
    Counters(IntSupplier plans) {
        this.plans = plans;
    }

    @Override
    public int getPlans() {
        return plans.getAsInt();
    }

    @Override
    public boolean isReading() {
        return isReading;
    }

    @Override
    public long getPlannedAssignments() {
        return planned.sum();
    }

    @Override
    public long getKeptAssignments() {
        return kept.sum();
    }

    @Override
    public long getMisfits() {
        return misfits.sum();
    }

    @Override
    public long getFailures() {
        return failures.sum();
    }

    @Override
    public long getIgnoredRecords() {
        return ignored.sum();
    }
}
