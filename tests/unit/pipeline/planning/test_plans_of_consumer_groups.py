"""From the records that a coordinator writes of a KIP-848 group to the decision about it."""

from dataclasses import replace
from typing import Any

import pytest

from assignor.protocol.kafka.consumer_group import ClassicMember, MemberState
from pipeline.config.model import GroupRule
from pipeline.fold.control_messages import about_plans, handed_over
from pipeline.planning.broker_reasons import ADVICE
from pipeline.planning.memory import PlanMemory
from pipeline.planning.step import PlanSettings, Stored, make_plans
from pipeline.planning.values import Published
from tests.support.groups.consumer_group_records import (
    Written,
    current,
    epoch,
    metadata,
    regex,
    target,
    target_epoch,
)
from tests.support.groups.consumer_group_table import Groups
from tests.support.job.frames import arrow, at
from tests.unit.pipeline.planning.test_make_plans import SETTINGS

_A, _B = {"t": [0, 1]}, {"t": [2, 3]}
_STABLE: tuple[Written, ...] = (
    epoch(4),
    metadata("a", "t", server_assignor="lagwise"),
    metadata("b", "t", server_assignor="lagwise"),
    target_epoch(4),
    target("a", _A),
    target("b", _B),
    current("a", 4, _A),
    current("b", 4, _B),
)


def decided(
    *records: Written,
    acks: list[dict[str, Any]] | None = None,
    later_ms: int = 0,
    memory: PlanMemory | None = None,
    settings: PlanSettings = SETTINGS,
) -> dict[str, Any]:
    settings = replace(settings, at_ms=settings.at_ms + later_ms)
    groups = Groups().run(*_STABLE, *records).table
    said = arrow("acks", *(acks or []))
    topic = [
        {"partition": n, "log_start_offset": 0, "log_end_offset": 1000, "observed_at": at(0)}
        | {"arrival_rate": 0.0}
        for n in range(4)
    ]
    stored = Stored(
        groups=groups,
        lags=arrow(
            "partition_lag",
            *(
                {"partition": n, "committed_offset": c, "lag": 1000 - c}
                for n, c in enumerate((100, 200, 990, 1000))
            ),
        ),
        topic_offsets=arrow("topic_offsets", *topic),
        acks=about_plans(said),
        moved=handed_over(said, groups),
        orders=arrow("orders"),
    )
    (row,) = make_plans(stored, ["g"], settings, memory or PlanMemory()).to_pylist()
    return dict(row)


def test_stable_group_is_advised_by_member_id_at_its_epoch() -> None:
    row = decided()

    assert (row["decision"], row["reason"], row["base_generation"]) == ("advice", ADVICE, 4)
    assert row["assignment"] == [("a", [("t", "0,3")]), ("b", [("t", "1-2")])]
    assert [(move["partition"], move["from"], move["to"]) for move in row["moves"]] == [
        (1, "a", "b"),
        (3, "b", "a"),
    ]
    assert (row["epoch"], row["record"], row["valid_until"], row["awaiting_since"]) == (
        None,
        None,
        None,
        None,
    )


def test_members_of_a_resolved_regular_expression_are_advised() -> None:
    assert decided(metadata("b", topic_regex="t.*"), regex("t.*", "t"))["decision"] == "advice"


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ((epoch(5),), "the group is not stable (state Assigning)"),
        ((epoch(5), target_epoch(5)), "the group is not stable (state Reconciling)"),
        ((metadata("b", topic_regex="t.*"),), "member b: its subscription is unknown"),
        ((current("b", 4, {"unnamed": [0], **_B}),), "member b: topics with these ids are unknown"),
        ((target("b", {"unnamed": [0], **_B}),), "member b: topics with these ids are unknown"),
        ((current("c", 4, {}),), "member c: metadata: no record"),
        ((metadata("c", "t"),), "member c: its partitions are unknown"),
        ((current("b", 4, {"t": [2]}),), "no member owns t-3"),
        ((current("b", 4, {"t": [1, 2, 3]}),), "two members own t-1"),
        (
            (metadata("b", "t", classic=ClassicMember(session_timeout_ms=1000, protocols=())),),
            "member b uses the classic protocol",
        ),
    ],
)
def test_what_is_not_known_or_not_settled_gets_no_advice(records: tuple[Written, ...], reason: str) -> None:
    row = decided(*records)

    assert (row["decision"], row["assignment"]) == ("abstain", None)
    assert row["reason"].startswith(reason)


def test_member_is_stuck_once_it_is_behind_for_longer_than_its_rebalance_timeout() -> None:
    behind = (
        epoch(5),
        target_epoch(5),
        current("a", 5, _A),
        current("b", 4, {"t": [2]}, pending={"t": [3]}, state=MemberState.UNREVOKED_PARTITIONS),
    )

    early, late = (decided(*behind, later_ms=later_ms)["reason"] for later_ms in (0, 600_000))

    assert early.startswith("the group is not stable (state Reconciling)")
    assert late.startswith("member b is stuck")


def test_what_somebody_writes_to_the_acks_topic_moves_nothing() -> None:
    said = {
        "kind": "taken",
        "generation": 4,
        "epoch": 1,
        "member_id": "b",
        "topic": "t",
        "partition": 0,
        "hop": 1,
    }

    assert decided(acks=[said | {"id": "t-0"}])["moves"] == decided()["moves"]


def test_plan_for_the_broker_is_accepted_by_nobody_who_writes_to_the_acks_topic() -> None:
    rules = SETTINGS.config.model_copy(update={"groups": (GroupRule(pattern="g", follow="broker"),)})
    settings = replace(SETTINGS, config=rules)
    first = decided(settings=settings)
    published = Published(
        epoch=first["epoch"],
        target_hash=first["target_hash"],
        base_hash=first["base_hash"],
        valid_until_ms=round(first["valid_until"].timestamp() * 1000),
    )
    memory = PlanMemory(published={"g": published}, states={"g": first["state"]})
    said = [{"kind": "accepted", "id": "a", "member_id": "a", "epoch": first["epoch"], "generation": 4}]

    second = decided(acks=said, memory=memory, settings=settings)

    assert (first["decision"], second["decision"]) == ("publish", "unchanged")
    assert second["reason"].endswith("the broker takes it when it assigns the group next")
