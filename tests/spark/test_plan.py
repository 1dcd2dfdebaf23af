"""Plans of all groups at once, on the executors."""

from dataclasses import replace
from datetime import timezone
from typing import Any

from pyspark.sql import SparkSession

from pipeline.config.model import GroupRule, PlanConfig
from pipeline.fold.control_messages import control_messages_by_group, handed_over
from pipeline.planning.memory import PlanMemory
from pipeline.planning.step import PlanSettings, Stored, make_plans
from pipeline.planning.values import Published
from tests.support.frames import NOW_MS, at, member, picked, stored, stored_groups, stored_lag, stored_topics
from tests.support.job import NO_GUARDS

SETTINGS = PlanSettings(
    cluster="local",
    config=PlanConfig(
        strategy="lag-aware",
        dry_run=False,
        guards=NO_GUARDS,
        groups=(GroupRule(pattern="hands-off", exclude=True),),
    ),
    max_record_bytes=1_000_000,
    at_ms=NOW_MS - 20_000,
    now_ms=NOW_MS,
    batch_id=7,
    behind=(9,),
    provisional_reason="partition 9 not read",
)
TOPICS = [
    {"partition": n, "log_start_offset": 0, "log_end_offset": 1000, "observed_at": at(0), "arrival_rate": 0.0}
    for n in range(4)
]
LAGS = [
    {"partition": n, "committed_offset": committed, "lag": 1000 - committed}
    for n, committed in enumerate((100, 200, 990, 1000))
]
GROUP: dict[str, Any] = {
    "state": "Stable",
    "protocol_type": "consumer",
    "assignor": "range",
    "generation": 4,
    "members": [member("a", assigned={"t": [0, 1]}), member("b", assigned={"t": [2, 3]})],
}


def _stored(spark: SparkSession, groups: list[dict[str, Any]], lags: list[dict[str, Any]]) -> Stored:
    return Stored(
        groups=stored_groups(spark, *groups),
        lags=stored_lag(spark, *lags),
        topic_offsets=stored_topics(spark, *TOPICS),
        control_messages=None,
    )


def plans(
    spark: SparkSession,
    groups: list[dict[str, Any]],
    lags: list[dict[str, Any]],
    published: dict[str, Published] | None = None,
) -> list[tuple[Any, ...]]:
    result = make_plans(_stored(spark, groups, lags), SETTINGS, PlanMemory(published=published or {}))
    return picked(result, "group_id", "decision", "epoch", "reason", "record")


def test_every_group_with_members_or_commits_has_one_row_with_its_reason(spark: SparkSession) -> None:
    groups = [GROUP, GROUP | {"group_id": "hands-off"}, GROUP | {"group_id": "late", "offsets_partition": 9}]
    lags = [*LAGS, {"group_id": "assigns", "committed_offset": 5}]

    rows = plans(spark, groups, lags)

    assert [(group, decision) for group, decision, *_ in rows] == [
        ("assigns", "abstain"),
        ("g", "publish"),
        ("hands-off", "abstain"),
        ("late", "abstain"),
    ]
    reasons = {row[0]: row[3] for row in rows}
    assert "assign()" in reasons["assigns"]
    assert "excludes the group" in reasons["hands-off"]
    assert "partition 9 not read" in reasons["late"]


def test_lag_that_cannot_be_measured_though_there_is_a_commit_stops_the_plan(spark: SparkSession) -> None:
    lags = [*LAGS[:2], LAGS[2] | {"lag": None}, LAGS[3]]

    ((_, decision, _, reason, _),) = plans(spark, [GROUP], lags)

    assert decision == "abstain"
    assert "deleted topic of the same name" in reason
    assert "the lag of t-2 is unknown" in reason


def test_epoch_follows_the_newest_published_plan(spark: SparkSession) -> None:
    known = {"g": Published(epoch=11, target_hash="", base_hash="", valid_until_ms=0)}

    assert [row[2] for row in plans(spark, [GROUP], LAGS, known)] == [12]


def test_same_rows_in_any_order_and_number_of_tasks_give_the_same_bytes(spark: SparkSession) -> None:
    groups = [GROUP | {"group_id": f"g{n}"} for n in range(5)]
    lags = [row | {"group_id": f"g{n}"} for n in range(5) for row in LAGS]

    one = plans(spark, groups, lags)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    three = plans(spark, groups[::-1], lags[::-1])
    spark.conf.set("spark.sql.shuffle.partitions", "1")

    assert one == three
    assert len({row[4] for row in one}) == 5


def test_group_row_holds_what_an_operator_asks_for(spark: SparkSession) -> None:
    result = make_plans(_stored(spark, [GROUP], LAGS), SETTINGS, PlanMemory())

    row = result.collect()[0]

    assert row.assignment == {"a": {"t": "0,3"}, "b": {"t": "1-2"}}
    assert [(m["partition"], m["from"], m["to"], m["lag"]) for m in row.moves] == [
        (1, "a", "b", 800),
        (3, "b", "a", 0),
    ]
    assert row.imbalance_after < row.imbalance_before
    assert (row.base_generation, row.strategy) == (4, "lag-aware")


def test_plan_is_valid_from_when_it_is_decided_however_long_its_batch_took_until_then(
    spark: SparkSession,
) -> None:
    ((until, updated),) = picked(
        make_plans(_stored(spark, [GROUP], LAGS), SETTINGS, PlanMemory()), "valid_until", "updated_at"
    )

    valid_for_s = SETTINGS.config.valid_for_s
    assert [one.replace(tzinfo=timezone.utc) for one in (until, updated)] == [at(valid_for_s), at(-20)]


def test_partition_that_was_handed_over_is_with_its_new_owner(spark: SparkSession) -> None:
    groups = stored_groups(spark, GROUP)
    hand_over = [
        {"kind": kind, "id": "t-1", "generation": 4, "epoch": 1, "member_id": who, "topic": "t", "hop": 1}
        | {"partition": 1, "position": position, "acked_at": at(0)}
        for position, (kind, who) in enumerate([("release", "a"), ("taken", "b")])
    ]
    acks, orders = stored(spark, "acks", *hand_over), stored(spark, "orders")
    messages = control_messages_by_group(acks, orders, handed_over(acks, groups))

    (row,) = make_plans(
        replace(_stored(spark, [GROUP], LAGS), control_messages=messages),
        replace(SETTINGS, only=("g",)),
        PlanMemory(),
    ).collect()

    assert [(m["partition"], m["from"], m["to"]) for m in row.moves] == [(3, "b", "a")]


def test_group_that_is_paused_abstains(spark: SparkSession) -> None:
    orders = stored(
        spark,
        "orders",
        {"paused": True, "pinned": {}, "ordered_by": "eva", "ordered_at": at(0), "position": 1},
    )
    acks = stored(spark, "acks")
    messages = control_messages_by_group(acks, orders, handed_over(acks, stored_groups(spark, GROUP)))

    (row,) = make_plans(
        replace(_stored(spark, [GROUP], LAGS), control_messages=messages), SETTINGS, PlanMemory()
    ).collect()

    assert row.decision == "abstain"
    assert row.reason.startswith("paused by eva")


def test_plan_and_memory_come_back_with_the_next_row(spark: SparkSession) -> None:
    first = make_plans(_stored(spark, [GROUP], LAGS), SETTINGS, PlanMemory()).collect()[0]
    published = {
        "g": Published(
            epoch=1,
            target_hash=first.target_hash,
            base_hash=first.base_hash,
            valid_until_ms=NOW_MS + 600_000,
        )
    }

    memory = PlanMemory(published=published, states={"g": first.state})

    second = make_plans(_stored(spark, [GROUP], LAGS), SETTINGS, memory).collect()[0]

    assert (second.decision, second.plan.epoch, second.plan.status, second.plan.moves) == (
        "unchanged",
        1,
        "open",
        2,
    )
