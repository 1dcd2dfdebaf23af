"""What commits show of many groups together is what they show of each."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pipeline.lag.lag import UNKNOWN, OffsetReset
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.evidence import EvidenceAsked, evidence
from pipeline.planning.problem.load import Before
from tests.support.planning.facts import NOW_MS, committing, partitions

SLOW = committing([100.0, 50.0], drained=[80.0, 50.0], behind=[6_000, 0], every_s=10)
LATE = committing([100.0, 50.0, 9.0], every_s=10, ago_s=600)
NEW = partitions([None, 7])


def asked(
    facts: PartitionFacts, *held: list[int], reset: OffsetReset = "earliest", committed_ms: int = 0
) -> EvidenceAsked:
    before = Before(
        changed_ms=0, is_settled=True, calm_s=math.nan, committed_ms=committed_ms, held={"t": held[0]}
    )
    return EvidenceAsked(
        partitions=facts,
        auto_offset_reset=reset,
        held=[np.array(own, np.int64) for own in held],
        before=[before] * len(held),
    )


GROUPS = [
    asked(SLOW, [0], [1]),
    asked(NEW, [0, 1], reset="latest"),
    asked(partitions([]), []),
    asked(LATE, [0, 2], [], [1], committed_ms=NOW_MS - 600_000),
    asked(NEW, [], [1], reset="earliest"),
    asked(SLOW, [1, 0]),
]


def test_groups_together_show_what_each_shows_alone() -> None:
    together = evidence(GROUPS, now_ms=NOW_MS)

    for found, group in zip(together, GROUPS, strict=True):
        (alone,) = evidence([group], now_ms=NOW_MS)
        assert found.lag.tolist() == alone.lag.tolist()
        assert found.backlog.tolist() == alone.backlog.tolist()
        # A time without a speed means nothing.
        assert [replace(load, shows_at_ms=0, level_s=0.0) for load in found.loads] == [
            replace(load, shows_at_ms=0, level_s=0.0) for load in alone.loads
        ]
        assert [load.level_s for load in found.loads] == pytest.approx(
            [load.level_s for load in alone.loads], nan_ok=True, rel=0, abs=0
        )
    assert evidence([], now_ms=NOW_MS) == []


def test_groups_that_are_looked_at_together_keep_their_members_and_rules() -> None:
    slow, latest, _, late, earliest, _ = evidence(GROUPS, now_ms=NOW_MS)

    assert [load.shows for load in slow.loads] == [80.0, None]
    assert [load.stands_still for load in late.loads] == [True, False, True]
    assert (latest.lag.tolist(), earliest.lag.tolist()) == ([0, 7], [1_000_000, 7])
    assert slow.loads[0].held == {"t": [0]}


def test_lag_that_is_unknown_stays_unknown() -> None:
    unknown = replace(NEW, log_end=np.array([UNKNOWN, 1_000_000]))

    (alone,), (_, together) = (
        evidence([*before, asked(unknown, [0])], now_ms=NOW_MS) for before in ([], [GROUPS[0]])
    )

    assert alone.lag.tolist() == together.lag.tolist() == [UNKNOWN, 7]
