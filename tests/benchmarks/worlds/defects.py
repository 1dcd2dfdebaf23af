"""Defects put back on purpose, to see what the judge alone makes of plans that rest on a wrong belief."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

from assignor.model.arrays import Int64s
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem import evidence
from pipeline.planning.problem.load import Before, Load, member_loads


@contextmanager
def raw_lag() -> Iterator[None]:
    """Lag between two commits is taken for a backlog, and what is drained with it for a speed."""
    with (
        mock.patch.object(evidence, "backlog", _all_lag),
        mock.patch.object(evidence, "member_loads", _loads_by_raw_lag),
    ):
        yield


DEFECTS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {"raw-lag": raw_lag}
"""By name, what puts a defect back for as long as it lasts. The judge is untouched."""


def _all_lag(_partitions: PartitionFacts, lag: Int64s) -> Int64s:
    return lag


def _loads_by_raw_lag(
    partitions: PartitionFacts,
    held: Sequence[Int64s],
    lag: Int64s,
    backlog: Int64s,
    before: Sequence[Before],
    *,
    now_ms: int,
) -> list[Load]:
    least = np.where(partitions.least_lag == UNKNOWN, UNKNOWN, lag)
    return member_loads(replace(partitions, least_lag=least), held, lag, backlog, before, now_ms=now_ms)
