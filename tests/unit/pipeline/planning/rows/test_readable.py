"""Lag that counts for a plan, while a transaction holds records back."""

import numpy as np

from pipeline.lag.lag import UNKNOWN
from pipeline.planning.rows.readable import readable
from tests.support.facts import partitions


def test_logs_end_where_the_group_can_have_read_to() -> None:
    facts = partitions([500, 500, 500, None])
    facts.lag_age_s[:] = 60.0

    found = readable(facts, np.array([999_500, 999_800, UNKNOWN, 999_000]))

    assert found.log_end.tolist() == [999_500, 999_800, 1_000_000, 999_000]
    # Nothing waits where nothing can be read.
    assert found.lag_age_s.tolist() == [0.0, 60.0, 60.0, 60.0]


def test_without_transactions_nothing_changes() -> None:
    facts = partitions([500, 0])

    assert readable(facts, np.array([1_000_000, 1_000_000])) is facts
