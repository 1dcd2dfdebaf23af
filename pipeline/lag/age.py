"""Lag in seconds: how long the next record to be read has been waiting.

It comes from the ring of samples, never from lag divided by a rate: a rate does not show when the
oldest unread record was written.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from assignor.model.arrays import Bools, Floats, Int64s
from pipeline.lag.bounded_lists import entry
from pipeline.lag.lag import UNKNOWN
from pipeline.lag.samples import Samples

_UNWATCHED_SHARE: Final = 0.8
"""Thinning leaves neighbours within 0.7 of the age of the older one after 20,000 samples, within 0.8 after 350,000: a
week, and four months, of samples 30 s apart. A gap that is wider than that is a time in which nobody asked for the log
end."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passage:
    """When the log end left an offset behind, for P partitions."""

    at_ms: Int64s
    """``[P]``, ms since the epoch; UNKNOWN for an empty ring."""
    earliest_ms: Int64s
    """``[P]``, the newest sample that had not passed the offset: its record came later. Means nothing if `is_older`."""
    latest_ms: Int64s
    """``[P]``, the first sample that had passed the offset: its record came before. ``at_ms`` if there is none."""
    is_unwatched: Bools
    """``[P]``, most of the time since ``earliest_ms`` lies between these two samples, so a line between them says
    nothing of when the record came."""
    is_older: Bools
    """``[P]``, the offset was passed before the oldest sample, whose time (if any) ``at_ms`` is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LagAge:
    """Lag in seconds of P partitions."""

    seconds: Floats
    """``[P]``, >= 0, nan where unknown."""
    most_seconds: Floats
    """``[P]``, it has not waited longer than this; nan where unknown, and where it is older than every sample."""
    is_lower_bound: Bools
    """``[P]``, it has waited this long or longer: it is older than every sample, or came while none were taken."""


def lag_age(
    samples: Samples, *, committed: Int64s, log_start: Int64s, lag: Int64s, now_ms: int, most_gap_ms: int
) -> LagAge:
    """Return the age of the next record to read, one entry per partition.

    0 where the lag is 0; nan where the lag is UNKNOWN or it is > 0 and the ring is empty. It is not
    negative when the clock has gone back.

    Args:
        samples: The rings, this batch's log end included.
        committed: Committed offset.
        log_start: First offset still in the log, or UNKNOWN.
        lag: ``lag.lag`` of the same partitions, records.
        now_ms: Time of the batch, ms since the epoch.
        most_gap_ms: Samples that are no further apart have a line between them, however new they are.
    """
    # Records below the log start are deleted: the next one to be read is the first that is left.
    passage = passage_of(samples, np.maximum(committed, log_start), now_ms=now_ms)
    # UNKNOWN is below 0, so it waits for nothing and is not 0 either: nan.
    waiting = (lag > 0) & (passage.at_ms != UNKNOWN)
    is_vague = passage.is_unwatched & (passage.latest_ms - passage.earliest_ms > most_gap_ms)
    is_lower_bound = waiting & (passage.is_older | is_vague)

    def since(at_ms: Int64s) -> Floats:
        waited_s = np.maximum(now_ms - at_ms, 0) / 1000.0
        return np.where(waiting, waited_s, np.where(lag == 0, 0.0, np.nan))

    return LagAge(
        seconds=since(np.where(is_vague, passage.latest_ms, passage.at_ms)),
        most_seconds=np.where(waiting & passage.is_older, np.nan, since(passage.earliest_ms)),
        is_lower_bound=is_lower_bound,
    )


def passage_of(samples: Samples, offset: Int64s, *, now_ms: int) -> Passage:
    """The time at which the log end was last at ``offset``, on straight lines between the samples.

    That is about when the record at ``offset`` arrived: between the two samples around it, so an age taken from it
    errs by less than the gap between them. The older samples are, the wider are their gaps; a gap in which the driver
    was stopped, or the leader silent, is wider still (`is_unwatched`). An offset that the newest sample has not passed
    gets the time of that sample.

    Args:
        samples: P rings.
        offset: ``[P]``, an offset >= 0 or UNKNOWN; for UNKNOWN the answer has no meaning.
        now_ms: Time of the batch, ms since the epoch.

    Source: the interpolation table of seglo/kafka-lag-exporter, without its extrapolation.
    """
    width = samples.log_end.shape[1]
    # The empty slots hold UNKNOWN, which no offset is below.
    reached = np.count_nonzero(samples.log_end <= offset[:, None], axis=1) - (width - samples.count)
    # Of log ends that are equal the last one counts: until then the record had not arrived.
    before = np.maximum(reached - 1, 0)
    behind = np.minimum(reached, np.maximum(samples.count - 1, 0))
    first_ms, first_end = entry(samples.observed_at_ms, before), entry(samples.log_end, before)
    rise = entry(samples.log_end, behind) - first_end
    fraction = np.where(rise > 0, (offset - first_end) / np.maximum(rise, 1), 0.0)
    duration_ms = entry(samples.observed_at_ms, behind) - first_ms
    at_ms = first_ms + (fraction * duration_ms).astype(np.int64)
    # The clock may have gone back. Of an empty ring this means nothing.
    age_ms = np.maximum(entry(samples.observed_at_ms, samples.count - 1), now_ms) - first_ms
    return Passage(
        at_ms=at_ms,
        earliest_ms=first_ms,
        latest_ms=first_ms + duration_ms,
        # Below the ring both neighbours are its oldest sample, above it its newest: no time lies between them.
        is_unwatched=(duration_ms > 0) & (duration_ms > _UNWATCHED_SHARE * age_ms),
        is_older=reached == 0,
    )
