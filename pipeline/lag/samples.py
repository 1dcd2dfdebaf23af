"""Bounded ring of (observed at, log end) samples per partition: when did the log end pass an offset?

In a ring both columns rise: times strictly, log ends weakly. A ring never forgets its oldest sample
by age, only by a restart, so that it spans as long a lag as possible.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from assignor.model.arrays import Bools, Int64s
from pipeline.lag import bounded_lists
from pipeline.lag.bounded_lists import Lists, entry, rewritten
from pipeline.lag.lag import UNKNOWN

RING_SIZE: Final = 16
"""A week of 30-second ticks then keeps neighbours within 0.7 of the age of the older one."""

SAMPLES_TYPE: Final = bounded_lists.list_type(required=("observed_at_ms", "log_end_offset"))
"""The Arrow form of the rings, times in ms since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples(Lists):
    """Rings of P partitions as dense matrices, oldest sample first, UNKNOWN behind the last one."""

    observed_at_ms: Int64s
    """``[P, K]``, ms since the epoch, strictly rising."""
    log_end: Int64s
    """``[P, K]``, log end offset at that time, never falling."""


def from_arrow(lists: pa.ListArray) -> Samples:
    """Rings of a column of ``SAMPLES_TYPE``; a null list is an empty ring."""
    (observed_at_ms, log_end), count = bounded_lists.from_arrow(lists, SAMPLES_TYPE, width=RING_SIZE)
    return Samples(observed_at_ms=observed_at_ms, log_end=log_end, count=count)


def to_arrow(samples: Samples) -> pa.ListArray:
    """The rings as a column of ``SAMPLES_TYPE``, without nulls."""
    return bounded_lists.to_arrow((samples.observed_at_ms, samples.log_end), samples.count, SAMPLES_TYPE)


def append(samples: Samples, observed_at_ms: Int64s, log_end: Int64s) -> Samples:
    """The rings with one more observation each; appending the same one again changes nothing.

    - Time or log end UNKNOWN: the ring stays as it is.
    - Log end below the newest sample (topic truncated or recreated): the ring restarts with this
      sample, because its samples are of other records.
    - Time not after the newest sample (clock gone back): the sample replaces all that are not older,
      because times that lie ahead of the clock would make every age 0 until it caught up.
    - Log end equal to that of the two newest: the newest is moved to this time, so a partition
      without traffic keeps two samples, the first and the last with this log end.
    - Ring full: the inner sample whose neighbours are closest together, measured by the age of the
      older one, gives way. Samples end up about evenly spaced on a logarithmic scale of age.

    Args:
        samples: P rings.
        observed_at_ms: ``[P]``, when the log end was observed.
        log_end: ``[P]``, log end offset.
    """
    # Samples that the new one replaces make space first: only a ring that is full even then is thinned.
    added = (observed_at_ms != UNKNOWN) & (log_end != UNKNOWN)
    kept = np.where(added, _kept(samples, observed_at_ms, log_end), samples.count)
    dropped = _dropped(samples, observed_at_ms, added & (kept == samples.log_end.shape[1]))
    kept = kept - (dropped < samples.log_end.shape[1])
    write = partial(rewritten, count=samples.count, dropped=dropped, kept=kept, added=added)
    return Samples(
        observed_at_ms=write(samples.observed_at_ms, observed_at_ms),
        log_end=write(samples.log_end, log_end),
        count=kept + added,
    )


def _kept(samples: Samples, observed_at_ms: Int64s, log_end: Int64s) -> Int64s:
    """How many samples stay in front of the new one, before a full ring is thinned."""
    kept = np.array(samples.count)
    # Clocks rarely go back: only those rows are looked through.
    back = np.flatnonzero(entry(samples.observed_at_ms, kept - 1) >= observed_at_ms)
    times = samples.observed_at_ms[back]
    kept[back] = np.count_nonzero((times != UNKNOWN) & (times < observed_at_ms[back, None]), axis=1)
    # An empty ring answers UNKNOWN, which no log end is below.
    kept[log_end < entry(samples.log_end, samples.count - 1)] = 0
    # Two samples of one log end mark when it was reached and until when it stayed; a third says nothing more.
    idle = (entry(samples.log_end, kept - 1) == log_end) & (entry(samples.log_end, kept - 2) == log_end)
    kept[idle] -= 1
    return kept


def _dropped(samples: Samples, observed_at_ms: Int64s, full: Bools) -> Int64s:
    """Index of the sample that gives way in each full ring, K in the others."""
    dropped = np.full(len(full), samples.log_end.shape[1], dtype=np.int64)
    rows = np.flatnonzero(full)
    times = samples.observed_at_ms[rows]
    # Oldest and newest sample never give way: they say how far back the ring reaches, and where it stands.
    older, newer = times[:, :-2], times[:, 2:]
    gap_by_age = (newer - older) / (observed_at_ms[rows, None] - older)
    dropped[rows] = np.argmin(gap_by_age, axis=1) + 1
    return dropped
