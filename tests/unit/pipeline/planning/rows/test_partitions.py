"""Lag that counts for a plan, while a transaction holds records back."""

from typing import Any

from pipeline.planning.rows.partitions import GroupPartitions
from tests.support.job.frames import arrow, at


def found(**log: Any) -> Any:
    """Partition t-0 of a group that has committed 500 of 1,000 records, the next of which is a minute old."""
    logs = arrow(
        "topic_offsets",
        {"topic": "t", "partition": 0, "log_start_offset": 0, "log_end_offset": 1000, "observed_at": at(0)}
        | log,
    )
    lags = arrow(
        "partition_lag",
        {
            "group_id": "g",
            "topic": "t",
            "partition": 0,
            "committed_offset": 500,
            "lag": 500,
            "lag_seconds": 60.0,
        },
    )
    return GroupPartitions(logs, lags).of("g", {"t"})


def test_log_ends_where_the_group_can_have_read_to() -> None:
    held = found(readable_offset=800, last_stable_offset=900)

    assert (held.log_end.tolist(), held.lag_age_s.tolist()) == ([800], [60.0])


def test_nothing_waits_where_nothing_can_be_read() -> None:
    held = found(readable_offset=400, last_stable_offset=600)

    assert (held.log_end.tolist(), held.lag_age_s.tolist()) == ([500], [0.0])


def test_group_that_reads_what_is_not_committed_is_behind_the_log_end_however_long_a_transaction_is_open() -> (
    None
):
    held = found(readable_offset=400, last_stable_offset=400)

    assert (held.log_end.tolist(), held.lag_age_s.tolist()) == ([1000], [60.0])


def test_without_transactions_the_log_ends_at_its_end() -> None:
    assert found(readable_offset=1000, last_stable_offset=1000).log_end.tolist() == [1000]
    assert found().log_end.tolist() == [1000]
