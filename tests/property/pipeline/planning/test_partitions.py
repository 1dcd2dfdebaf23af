"""Partitions of a group, held against a join that is written down as one would say it."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assignor.model.java_order import java_order
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.rows.partitions import GroupPartitions
from tests.support.job.frames import arrow, at

Row = dict[str, Any]

# Java and Python sort the last two in different orders.
TOPICS = ("a", "ab", "b", "�", "\U0001f600")
NUMBERS = st.none() | st.integers(0, 9)
PLACES = st.tuples(st.sampled_from(TOPICS), st.integers(0, 3))
LOGS = st.fixed_dictionaries(
    {
        "log_start_offset": NUMBERS,
        "log_end_offset": NUMBERS,
        "arrival_rate": st.none() | st.just(2.5),
        "error": st.none() | st.just("no answer"),
        "observed_at": st.none() | st.just(at(0)),
        "deleted_at": st.none() | st.just(at(1)),
    }
)
COMMITS = st.fixed_dictionaries(
    {
        "committed_offset": NUMBERS,
        "lag": NUMBERS,
        "drain_rate": st.none() | st.just(1.5),
        "lag_seconds": st.none() | st.just(60.0),
        "commit_timestamp": st.none() | st.sampled_from((at(-30.5), at(2))),
        "lag_at_commit": NUMBERS,
        "least_lag_at_commit": NUMBERS,
        "commit_interval_seconds": st.none() | st.just(5.0),
        "commit_rate": st.none() | st.just(0.5),
        "commit_span_seconds": st.none() | st.just(20.0),
    }
)


@given(
    logs=st.dictionaries(PLACES, LOGS),
    commits=st.dictionaries(st.tuples(st.sampled_from("gh"), PLACES), COMMITS),
    subscribed=st.sets(st.sampled_from((*TOPICS, "unknown"))),
)
def test_partitions_are_those_that_exist_of_subscribed_topics_with_what_the_group_committed(
    logs: dict[tuple[str, int], Row],
    commits: dict[tuple[str, tuple[str, int]], Row],
    subscribed: set[str],
) -> None:
    topic_offsets = arrow(
        "topic_offsets", *({"topic": t, "partition": n} | row for (t, n), row in logs.items())
    )
    lags = arrow(
        "partition_lag",
        *({"group_id": g, "topic": t, "partition": n} | row for (g, (t, n)), row in commits.items()),
    )

    found = GroupPartitions(topic_offsets, lags).of("g", subscribed)

    places = sorted(
        (place for place, row in logs.items() if place[0] in subscribed and row["deleted_at"] is None),
        key=lambda place: (java_order(place[0]), place[1]),
    )
    own = [commits.get(("g", place), dict.fromkeys(("committed_offset", "lag"))) for place in places]
    assert list(zip(found.topic, found.partition.tolist(), strict=True)) == places
    assert found.log_end.tolist() == [_number(logs[place]["log_end_offset"]) for place in places]
    assert found.log_start.tolist() == [_number(logs[place]["log_start_offset"]) for place in places]
    assert list(found.unanswered) == [logs[place]["error"] for place in places]
    assert found.committed.tolist() == [_number(row["committed_offset"]) for row in own]
    assert found.incomparable.tolist() == [
        row["committed_offset"] is not None and row["lag"] is None for row in own
    ]
    assert _floats(found.drain_rate) == [row.get("drain_rate") for row in own]
    assert _floats(found.lag_age_s) == [row.get("lag_seconds") for row in own]
    assert _floats(found.commit_interval_s) == [row.get("commit_interval_seconds") for row in own]
    assert _floats(found.commit_rate) == [row.get("commit_rate") for row in own]
    assert _floats(found.commit_span_s) == [row.get("commit_span_seconds") for row in own]
    assert found.lag_at_commit.tolist() == [_number(row.get("lag_at_commit")) for row in own]
    assert found.least_lag.tolist() == [_number(row.get("least_lag_at_commit")) for row in own]
    ages = {None: None, at(-30.5): 30.5, at(2): 0.0}
    assert _floats(found.commit_age_s) == [
        None if logs[place]["observed_at"] is None else ages[row.get("commit_timestamp")]
        for place, row in zip(places, own, strict=True)
    ]
    ahead = {None: 0.0, at(-30.5): 0.0, at(2): 2.0}
    assert found.commit_ahead_s.tolist() == [
        0.0 if logs[place]["observed_at"] is None else ahead[row.get("commit_timestamp")]
        for place, row in zip(places, own, strict=True)
    ]
    assert _floats(found.arrival_rate) == [logs[place]["arrival_rate"] for place in places]


def _number(value: int | None) -> int:
    return UNKNOWN if value is None else value


def _floats(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]
