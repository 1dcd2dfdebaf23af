"""Spark folds and measures as the driver does: the same rows of a state in which everything happens at once."""

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipeline.fold import on_driver, owners, step
from pipeline.fold.control_messages import handed_over, held_partitions
from pipeline.lag.logs import TopicSettings
from pipeline.lag.step import lag_of, measure_lag, measure_topic_offsets, topic_offsets_of
from tests.support.folded import LAGS
from tests.support.frames import (
    NOW_MS,
    arrow,
    at,
    decoded,
    decoded_arrow,
    member,
    stored_groups,
    stored_lag,
    stored_topics,
)

GROUPS, TOPICS, PARTITIONS, OFFSETS_PARTITIONS = ("g", "h", "i"), ("t", "u", "gone"), range(12), (1, 2, None)
Row = dict[str, Any]


def topic_rows(dice: random.Random) -> list[Row]:
    return [
        {
            "topic": topic,
            "partition": partition,
            "log_start_offset": dice.choice((None, 0, 20)),
            "log_end_offset": dice.choice((None, 100, 140)),
            "observed_at": dice.choice((None, at(-10))),
            "arrival_rate": dice.choice((None, 5.0)),
            "samples": [(NOW_MS - 10_000, 100)][: dice.randint(0, 1)],
            "deleted_at": at(-30) if topic == "gone" else None,
            "error": dice.choice((None, None, "no answer")),
            "topic_id": dice.choice((None, "A", "B")),
            "topic_id_at": dice.choice((None, at(-10), at(-20))),
        }
        for topic in TOPICS
        for partition in PARTITIONS
        if dice.random() < 0.8
    ]


def observed_rows(dice: random.Random) -> list[Row]:
    return [
        {
            "row_kind": "log_offset",
            "topic": topic,
            "partition": partition,
            "topic_id": dice.choice((None, "A", "B")),
            "log_start_offset": None if end is None else 0,
            "log_end_offset": end,
            "observed_at_ms": NOW_MS,
            "error": "timed out" if end is None else None,
        }
        for topic in TOPICS
        for partition in PARTITIONS
        for end in (dice.choice((None, 90, 150)),)
        if dice.random() < 0.7
    ]


def lag_rows(dice: random.Random) -> list[Row]:
    return [
        {
            "group_id": group,
            "topic": topic,
            "partition": partition,
            "committed_offset": committed,
            "commit_position": None if committed is None else dice.randint(1, 20),
            "commit_timestamp": None if committed is None else at(-20),
            "commit_topic_id": dice.choice((None, "A")),
            "leader_epoch": dice.choice((None, 3)),
            "offsets_partition": dice.choice(OFFSETS_PARTITIONS),
            "confirmed": dice.random() < 0.7,
            "provisional": dice.random() < 0.2,
            "drain_rate": dice.choice((None, 2.0)),
            "recent_commits": [] if committed is None else [(committed, NOW_MS - 20_000, 6)],
            "history_at": dice.choice((None, at(-30), at(-70), at(-1000))),
            "history_hash": dice.choice((None, 1)),
        }
        for group in GROUPS
        for topic in TOPICS
        for partition in PARTITIONS
        for committed in (dice.choice((None, 10, 40, 130)),)
        if dice.random() < 0.6
    ]


def events(dice: random.Random) -> list[Row]:
    return [
        {
            "row_kind": kind,
            "group_id": group,
            "topic": topic,
            "partition": partition,
            "offsets_partition": dice.choice((1, 2)),
            "position": position,
            **(
                {"committed_offset": position * 5, "commit_timestamp_ms": NOW_MS - 500, "topic_id": "A"}
                if kind == "commit"
                else {}
            ),
        }
        for position, (group, topic, partition) in enumerate(
            (dice.choice(GROUPS), dice.choice(TOPICS), dice.choice(PARTITIONS)) for _ in range(60)
        )
        for kind in (dice.choice(("commit", "commit", "tombstone")),)
    ]


def group_rows(dice: random.Random) -> list[Row]:
    return [
        {
            "group_id": group,
            "generation": 4,
            "offsets_partition": dice.choice((1, 2)),
            "members": [
                member(
                    name,
                    client_id=f"c-{name}",
                    assigned={topic: dice.sample(PARTITIONS, 5) for topic in TOPICS},
                )
                for name in ("b", "a")
            ],
        }
        for group in GROUPS[:2]
    ]


def ack_rows(dice: random.Random) -> list[Row]:
    return [
        {
            "kind": kind,
            "id": "x",
            "group_id": group,
            "generation": generation,
            "epoch": 1,
            "topic": "t",
            "member_id": who,
            "hop": hop,
            "partition": partition,
            "position": hop,
            "acked_at": at(0),
        }
        for partition in PARTITIONS
        for group in GROUPS
        for hop in range(dice.randint(0, 3))
        for kind, who, generation in (
            (dice.choice(("release", "taken")), dice.choice(("a", "b", "x")), dice.choice((4, 4, 4, 3))),
        )
    ]


@pytest.mark.parametrize(("reread", "behind"), [((), ()), ((1,), (1,)), ((1,), ()), ((), (2,))])
def test_lag_of_a_state_in_which_everything_happens_is_the_same(
    spark: SparkSession, reread: tuple[int, ...], behind: tuple[int, ...]
) -> None:
    dice = random.Random(f"{reread}{behind}")
    logs, lags, new, groups, acks = (
        make(dice) for make in (topic_rows, lag_rows, events, group_rows, ack_rows)
    )
    moved = handed_over(arrow("acks", *acks), arrow("consumer_groups", *groups))
    settings = replace(LAGS, behind=behind)

    here = on_driver.fold_commits(
        arrow("partition_lag", *lags),
        on_driver.newest_commits(decoded_arrow(*new)),
        owners.held_partitions(arrow("consumer_groups", *groups), moved),
        reread=reread,
        behind=behind,
    )
    known = stored_groups(spark, *groups)
    there = step.fold_commits(
        stored_lag(spark, *lags),
        step.newest_commits(decoded(spark, *new)),
        held_partitions(step.assigned_partitions(known), spark.createDataFrame(moved), known),
        reread=reread,
        behind=behind,
    )

    measured = lag_of(here, arrow("topic_offsets", *logs), settings)
    assert measured.num_rows > 50
    assert moved.num_rows > 5
    assert same(measured) == same(measure_lag(there, stored_topics(spark, *logs), settings).toArrow())


@pytest.mark.parametrize("listing_error", [None, "no broker"])
def test_log_offsets_of_topics_in_every_state_are_the_same(
    spark: SparkSession, listing_error: str | None
) -> None:
    dice = random.Random(listing_error)
    stored, now = topic_rows(dice), observed_rows(dice)
    settings = TopicSettings(
        at_ms=NOW_MS,
        batch_id=7,
        half_life_ms=60_000,
        listing_error=listing_error,
        remaining={"t": 5},
        unconfirmed={"u": "no right to describe it"},
    )
    tables = arrow("topic_offsets", *stored), decoded_arrow(*now)
    frames = stored_topics(spark, *stored), decoded(spark, *now)

    here = topic_offsets_of(on_driver.fold_topic_offsets(*tables), settings)

    assert same(here) == same(measure_topic_offsets(step.fold_topic_offsets(*frames), settings).toArrow())
    assert on_driver.missing_topics(*tables) == step.missing_topics(*frames) != []


def same(table: pa.Table) -> list[str]:
    """The rows in one order; as text, since nan is not equal to itself."""
    return sorted(repr(sorted(row.items())) for row in table.to_pylist())
