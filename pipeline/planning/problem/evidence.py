"""Evidence from commits, for many groups at once: lag, backlog, and the present load of each member.

There are thousands of groups with a few members and some dozens of partitions each. A call of numpy takes as long for
one of them as for a hundred, so those who decide about many groups ask for all of them together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, chain
from typing import Any

import numpy as np

from assignor.model.arrays import Int64s
from pipeline.lag.lag import OffsetReset, assignor_lag
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.backlog import backlog
from pipeline.planning.problem.load import Before, Load, member_loads

_NOT_JOINED = ("topic", "topics", "incomparable", "commit_ahead_s", "unanswered")
_COLUMNS = tuple(field.name for field in fields(PartitionFacts) if field.name not in _NOT_JOINED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvidenceAsked:
    """A group, as far as its evidence depends on it."""

    partitions: PartitionFacts
    auto_offset_reset: OffsetReset
    held: Sequence[Int64s]
    """Indices of each member's partitions."""
    before: Sequence[Before]
    """Earlier knowledge of each member."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Evidence from the commits of one group."""

    lag: Int64s
    """P entries, records: see `lag.assignor_lag`; UNKNOWN where it is."""
    backlog: Int64s
    """P entries, records: see `backlog.backlog`; of no meaning where the lag is unknown."""
    loads: Sequence[Load]
    """What each member does now."""


def evidence(asked: Sequence[EvidenceAsked], *, now_ms: int) -> list[Evidence]:
    """The evidence of each group, the same as of the group alone.

    Args:
        asked: The groups.
        now_ms: Time of the decision.
    """
    if not asked:
        return []
    begins = list(accumulate((len(one.partitions.partition) for one in asked), initial=0))
    whole = _joined([one.partitions for one in asked])
    lag = _lag(whole, asked, begins)
    behind = backlog(whole, lag)
    held = [own + begin for one, begin in zip(asked, begins, strict=False) for own in one.held]
    before = list(chain.from_iterable(one.before for one in asked))
    loads = iter(member_loads(whole, held, lag, behind, before, now_ms=now_ms))
    return [
        Evidence(lag=lag[begin:end], backlog=behind[begin:end], loads=[next(loads) for _ in one.held])
        for one, begin, end in zip(asked, begins, begins[1:], strict=False)
    ]


def _joined(groups: Sequence[PartitionFacts]) -> PartitionFacts:
    """The partitions of all groups, one group after the other, without names."""
    if len(groups) == 1:
        return groups[0]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in groups]) for name in _COLUMNS
    }
    return PartitionFacts(topic=[], **columns)


def _lag(whole: PartitionFacts, asked: Sequence[EvidenceAsked], begins: Sequence[int]) -> Int64s:
    resets = {one.auto_offset_reset for one in asked}
    lags = {reset: assignor_lag(whole.committed, whole.log_start, whole.log_end, reset) for reset in resets}
    if len(lags) == 1:
        return lags[asked[0].auto_offset_reset]
    places = zip(asked, begins, begins[1:], strict=False)
    return np.concatenate([lags[one.auto_offset_reset][begin:end] for one, begin, end in places])
