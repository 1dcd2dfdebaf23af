"""The measuring rules for one partition, written plainly; None is unknown."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from pipeline.lag.commits.at_commit import CLOCK_ERROR_MS
from pipeline.lag.samples import RING_SIZE
from pipeline.lag.status import MIN_SPAN_MS
from tests.support.job.measures import Commit, Sample


def lag(committed: int | None, log_start: int | None, log_end: int | None) -> int | None:
    if committed is None or log_end is None:
        return None
    floor = committed if log_start is None else max(committed, log_start)
    return max(0, log_end - floor)


def assignor_lag(committed: int | None, log_start: int | None, log_end: int | None, reset: str) -> int | None:
    if committed is not None:
        return lag(committed, log_start, log_end)
    if log_end is None:
        return None
    if reset == "latest":
        return 0
    return None if log_start is None else max(0, log_end - log_start)


def append(ring: list[Sample], observed_at_ms: int | None, log_end: int | None) -> list[Sample]:
    if observed_at_ms is None or log_end is None:
        return ring
    if ring and log_end < ring[-1][1]:
        return [(observed_at_ms, log_end)]
    kept = [sample for sample in ring if sample[0] < observed_at_ms]
    if [end for _, end in kept[-2:]] == [log_end, log_end]:
        kept.pop()
    if len(kept) == RING_SIZE:
        kept.pop(_least_needed(kept, observed_at_ms))
    return [*kept, (observed_at_ms, log_end)]


def _least_needed(ring: list[Sample], now_ms: int) -> int:
    def gap_by_age(index: int) -> float:
        older_ms, newer_ms = ring[index - 1][0], ring[index + 1][0]
        return (newer_ms - older_ms) / (now_ms - older_ms)

    return min(range(1, RING_SIZE - 1), key=lambda index: (gap_by_age(index), index))


def passed_at(ring: Sequence[Sample], offset: int) -> tuple[Fraction, bool] | None:
    """When the log end was last at ``offset``, and whether that was before the ring."""
    if not ring:
        return None
    if offset < ring[0][1]:
        return Fraction(ring[0][0]), True
    at, end = [sample for sample in ring if sample[1] <= offset][-1]
    for next_at, next_end in ring:
        if next_end > offset:
            return at + Fraction(offset - end, next_end - end) * (next_at - at), False
    return Fraction(at), False


def unwatched(ring: Sequence[Sample], offset: int, now_ms: int) -> tuple[int, int] | None:
    """The samples around ``offset``, if more than four fifths of the time since the first lie between them."""
    before = [at for at, end in ring if end <= offset]
    behind = [at for at, end in ring if end > offset]
    until_ms = max([now_ms, *(at for at, _ in ring)])
    if not before or not behind or 5 * (behind[0] - before[-1]) <= 4 * (until_ms - before[-1]):
        return None
    return before[-1], behind[0]


def lag_at_commit(  # noqa: PLR0917 - a row of the table
    ring: Sequence[Sample],
    committed: int | None,
    commit_ms: int | None,
    log_start: int | None,
    end: int | None,
    readable: int | None,
    last_stable: int | None,
    most_gap_ms: int,
) -> int | None:
    now = lag(committed, log_start, end)
    if now is None or committed is None or end is None or committed > end:
        return None
    if now == 0:
        return 0
    end_then = None if commit_ms is None else _end_at(ring, commit_ms, most_gap_ms)
    if commit_ms is None or end_then is None:
        return None
    surely_later = [end for at, end in ring if at > commit_ms + CLOCK_ERROR_MS]
    if surely_later and surely_later[0] < committed:
        return None
    then = lag(committed, log_start, end_then)
    reads_all = readable is None or (last_stable is not None and committed > last_stable)
    could = end if readable is None or reads_all else min(end, max(readable, committed))
    return None if then is None else min(then, now, lag(committed, log_start, could) or 0)


def _end_at(ring: Sequence[Sample], at_ms: int, most_gap_ms: int) -> int | None:
    """On the line between the neighbours; of the newest for what is a little later."""
    if not ring or at_ms < ring[0][0] or at_ms > ring[-1][0] + CLOCK_ERROR_MS:
        return None
    for (first_ms, first), (next_ms, following) in pairwise(ring):
        if first_ms <= at_ms < next_ms:
            if next_ms - first_ms > most_gap_ms and following != first:
                return None
            return first + int(Fraction(at_ms - first_ms, next_ms - first_ms) * (following - first))
    return ring[-1][1]


def status(
    window: Sequence[Commit],
    ring: Sequence[Sample],
    *,
    log_start: int | None,
    log_end: int | None,
    topic_exists: bool,
    now_ms: int,
    allowed_lag: int,
) -> str:
    if not topic_exists:
        return "DELETED"
    if not window:
        return "NOT_COMMITTED"
    if log_end is None:
        return "UNKNOWN"
    if log_start is not None and window[-1][0] < log_start:
        return "EXPIRED"
    return judge_lag(window, ring, log_end - window[-1][0], now_ms, allowed_lag)


def judge_lag(
    window: Sequence[Commit], ring: Sequence[Sample], lag: int, now_ms: int, allowed_lag: int
) -> str:
    if lag <= allowed_lag:
        return "OK"
    if is_stopped(window, ring, now_ms, allowed_lag):
        return "STOP"
    return judge_commits(window, allowed_lag)


def is_stopped(window: Sequence[Commit], ring: Sequence[Sample], now_ms: int, allowed_lag: int) -> bool:
    times = [at for _, at, _ in window]
    passage = passed_at(ring, window[-1][0] + allowed_lag)
    silent_since_ms = Fraction(times[-1])
    if passage is not None and not passage[1]:
        # Times are whole milliseconds.
        gap = unwatched(ring, window[-1][0] + allowed_lag, now_ms)
        began_ms = int(passage[0]) if gap is None else gap[1]
        silent_since_ms = max(silent_since_ms, Fraction(began_ms))
    return now_ms - silent_since_ms > max(max(times) - min(times), MIN_SPAN_MS)


def judge_commits(window: Sequence[Commit], allowed_lag: int) -> str:
    offsets = [offset for offset, _, _ in window]
    lags = [lag for _, _, lag in window if lag is not None]
    if any(lag <= allowed_lag for lag in lags):
        return "OK"
    if any(after < before for before, after in pairwise(offsets)):
        return "REWIND"
    if len(offsets) > 1 and len(set(offsets)) == 1:
        return "STALL"
    if len(lags) > 1 and lags == sorted(lags):
        return "WARN"
    return "OK"
