"""Lag of a group as KIP-169 computes it, from offsets that a client was asked for."""

import logging
from collections.abc import Mapping
from typing import TypeAlias

log = logging.getLogger(__name__)

Lags: TypeAlias = Mapping[tuple[str, int], int]
"""Records of lag by (topic, partition)."""

Offsets: TypeAlias = Mapping[tuple[str, int], int]
"""Offsets by (topic, partition); a client's own `TopicPartition` is such a tuple, too."""

LAG_WITHIN_S = 2.0
"""Time that a leader waits for lag; the whole group is stopped meanwhile."""


def lags_of(*, committed: Offsets, starts: Offsets, ends: Offsets, from_latest: bool) -> Lags:
    """Return the lag in records of each partition whose log start and end are known; others are left out.

    Without a commit it is 0 if members begin at the end, otherwise the whole log. Records below the log start are
    deleted, and do not count.

    Args:
        committed: Where there is a commit; negative where a client says so that there is none.
        starts: Log start offsets.
        ends: Log end offsets.
        from_latest: Whether auto.offset.reset is `latest`.
    """
    lags = {}
    for place in starts.keys() & ends.keys():
        position = committed.get(place, -1)
        if position < 0:
            position = ends[place] if from_latest else starts[place]
        position = max(position, starts[place])
        lags[place] = max(ends[place] - position, 0)
    return lags


def warn_of_no_lag(group: str, problem: Exception) -> None:
    """Say that the leader could not ask for lag; it must not raise, for that would stop its group."""
    log.warning(
        "the lag of the group cannot be fetched, so the assignment balances partition counts alone",
        extra={"group": group, "problem": f"{type(problem).__name__}: {problem}"},
    )
