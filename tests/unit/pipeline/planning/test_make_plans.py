"""Plans of all groups at once, from the tables to rows."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pipeline.config.model import GroupRule, PlanConfig
from pipeline.fold.control_messages import about_plans, handed_over
from pipeline.planning.memory import PlanMemory
from pipeline.planning.state import FRESH, from_json, to_json
from pipeline.planning.step import PlanSettings, Stored, abstain, make_plans
from pipeline.planning.values import Published
from tests.support.job.frames import NOW_MS, arrow, at, member
from tests.support.job.job import NO_GUARDS

Row = dict[str, Any]

SETTINGS = PlanSettings(
    cluster="local",
    config=PlanConfig(
        strategy="lag-aware",
        dry_run=False,
        guards=NO_GUARDS,
        groups=(GroupRule(pattern="hands-off", exclude=True),),
    ),
    half_life_ms=120_000,
    max_record_bytes=1_000_000,
    batch_interval_s=30,
    at_ms=NOW_MS - 20_000,
    now_ms=NOW_MS,
    batch_id=7,
    least_epoch=1,
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


def _stored(groups: list[Row], lags: list[Row], *, acks: list[Row] = [], orders: list[Row] = []) -> Stored:  # noqa: B006 - read only
    known = arrow("consumer_groups", *groups)
    said = arrow("acks", *acks)
    return Stored(
        groups=known,
        lags=arrow("partition_lag", *lags),
        topic_offsets=arrow("topic_offsets", *TOPICS),
        acks=about_plans(said),
        moved=handed_over(said, known),
        orders=arrow("orders", *orders),
    )


def decided(
    stored: Stored,
    memory: PlanMemory | None = None,
    wanted: list[str] | None = None,
    *,
    settings: PlanSettings = SETTINGS,
) -> list[Row]:
    names = [*stored.groups["group_id"].to_pylist(), *stored.lags["group_id"].to_pylist()]
    rows: list[Row] = make_plans(stored, wanted or names, settings, memory or PlanMemory()).to_pylist()
    return rows


def plans(
    groups: list[Row], lags: list[Row], published: dict[str, Published] | None = None
) -> list[tuple[Any, ...]]:
    rows = decided(_stored(groups, lags), PlanMemory(published=published or {}))
    return [
        tuple(row[name] for name in ("group_id", "decision", "epoch", "reason", "record")) for row in rows
    ]


def test_every_group_with_members_or_commits_has_one_row_with_its_reason() -> None:
    groups = [GROUP, GROUP | {"group_id": "hands-off"}, GROUP | {"group_id": "late", "offsets_partition": 9}]
    lags = [*LAGS, {"group_id": "assigns", "committed_offset": 5}]

    rows = plans(groups, lags)

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


def test_group_whose_acknowledgements_are_not_read_gets_no_plan_and_others_do() -> None:
    stored = _stored(
        [GROUP, GROUP | {"group_id": "shop-a"}], [*LAGS, *(row | {"group_id": "shop-a"} for row in LAGS)]
    )
    settings = replace(SETTINGS, held_groups={"shop-a": "shop.acks cannot be read"})

    rows = decided(stored, settings=settings)

    assert [row["decision"] for row in rows] == ["publish", "abstain"]
    assert "shop.acks cannot be read" in rows[1]["reason"]


def test_lag_that_cannot_be_measured_though_there_is_a_commit_stops_the_plan() -> None:
    lags = [*LAGS[:2], LAGS[2] | {"lag": None}, LAGS[3]]

    ((_, decision, _, reason, _),) = plans([GROUP], lags)

    assert decision == "abstain"
    assert "deleted topic of the same name" in reason
    assert "the lag of t-2 is unknown" in reason


def test_epoch_follows_the_newest_published_plan() -> None:
    known = {"g": Published(epoch=11, target_hash="", base_hash="", valid_until_ms=0)}

    assert [row[2] for row in plans([GROUP], LAGS, known)] == [12]


def test_same_rows_in_any_order_give_the_same_bytes() -> None:
    groups = [GROUP | {"group_id": f"g{n}"} for n in range(5)]
    lags = [row | {"group_id": f"g{n}"} for n in range(5) for row in LAGS]

    one, other = plans(groups, lags), plans(groups[::-1], lags[::-1])

    assert one == other
    assert len({row[4] for row in one}) == 5


def test_only_the_groups_that_are_asked_for_are_decided_about() -> None:
    stored = _stored([GROUP, GROUP | {"group_id": "other"}], LAGS)

    assert [row["group_id"] for row in decided(stored, wanted=["g", "of nobody"])] == ["g"]


def test_group_row_holds_what_an_operator_asks_for() -> None:
    (row,) = decided(_stored([GROUP], LAGS))

    assert row["assignment"] == [("a", [("t", "0,3")]), ("b", [("t", "1-2")])]
    assert [(m["partition"], m["from"], m["to"], m["lag"]) for m in row["moves"]] == [
        (1, "a", "b", 800),
        (3, "b", "a", 0),
    ]
    assert row["imbalance_after"] < row["imbalance_before"]
    assert (row["base_generation"], row["strategy"]) == (4, "lag-aware")


def test_plan_is_valid_from_when_it_is_decided_however_long_its_batch_took_until_then() -> None:
    (row,) = decided(_stored([GROUP], LAGS))

    assert (row["valid_until"], row["updated_at"]) == (at(SETTINGS.config.valid_for_s), at(-20))


def test_partition_that_was_handed_over_is_with_its_new_owner() -> None:
    hand_over = [
        {"kind": kind, "id": "t-1", "generation": 4, "epoch": 1, "member_id": who, "topic": "t", "hop": 1}
        | {"partition": 1, "position": position, "acked_at": at(0)}
        for position, (kind, who) in enumerate([("release", "a"), ("taken", "b")])
    ]

    (row,) = decided(_stored([GROUP], LAGS, acks=hand_over))

    assert [(m["partition"], m["from"], m["to"]) for m in row["moves"]] == [(3, "b", "a")]


def test_group_that_is_paused_abstains() -> None:
    order = {"paused": True, "pinned": {}, "ordered_by": "eva", "ordered_at": at(0), "position": 1}

    (row,) = decided(_stored([GROUP], LAGS, orders=[order]))

    assert row["decision"] == "abstain"
    assert row["reason"].startswith("paused by eva")


def test_group_that_a_broker_could_mistake_for_another_abstains() -> None:
    settings = replace(SETTINGS, mistakable={"g": "member a is also a member of group h"})

    (row,) = make_plans(_stored([GROUP], LAGS), ["g"], settings, PlanMemory()).to_pylist()

    assert (row["decision"], row["reason"]) == ("abstain", "member a is also a member of group h")


def test_plan_and_memory_come_back_with_the_next_row() -> None:
    (first,) = decided(_stored([GROUP], LAGS))
    published = {
        "g": Published(
            epoch=1,
            target_hash=first["target_hash"],
            base_hash=first["base_hash"],
            valid_until_ms=NOW_MS + 600_000,
        )
    }

    (second,) = decided(_stored([GROUP], LAGS), PlanMemory(published=published, states={"g": first["state"]}))

    plan = second["plan"]
    assert (second["decision"], plan["epoch"], plan["status"], plan["moves"]) == ("unchanged", 1, "open", 2)


def test_epoch_is_the_clock_of_the_batch_whenever_it_decides_or_the_next_of_the_group() -> None:
    stored = _stored([GROUP, GROUP | {"group_id": "h"}], [*LAGS, *(row | {"group_id": "h"} for row in LAGS)])
    newest = Published(epoch=7, target_hash="", base_hash="", valid_until_ms=NOW_MS + 60_000)
    memory = PlanMemory(published={"h": newest})
    at_7 = replace(SETTINGS, least_epoch=7, now_ms=NOW_MS + 50)

    assert [row["epoch"] for row in decided(stored, memory, settings=at_7)] == [7, 8]
    assert [row["epoch"] for row in decided(stored, memory, settings=replace(at_7, least_epoch=900))] == [
        900,
        900,
    ]


@pytest.mark.parametrize(("least_epoch", "expected"), [(900, 900), (0, 8)], ids=["clock", "clock in doubt"])
def test_epoch_of_a_withdrawal_is_the_clock_of_the_batch_unless_that_is_in_doubt(
    least_epoch: int, expected: int
) -> None:
    order = {"paused": True, "pinned": {}, "ordered_by": "eva", "ordered_at": at(0), "position": 1}
    newest = Published(epoch=7, target_hash="", base_hash="", valid_until_ms=NOW_MS + 60_000)
    settings = replace(SETTINGS, least_epoch=least_epoch, held="the clock" if not least_epoch else None)

    (row,) = decided(
        _stored([GROUP], LAGS, orders=[order]), PlanMemory(published={"g": newest}), settings=settings
    )

    assert (row["decision"], row["epoch"], row["record"]) == ("publish", expected, None)


def test_fault_in_one_group_is_its_reason_to_abstain_and_stops_nobody_else() -> None:
    damaged = GROUP | {"group_id": "damaged", "members": [member("a", assigned={"t": None})]}

    reasons = {row[0]: row[1:4] for row in plans([damaged, GROUP], LAGS)}

    assert reasons["damaged"][0] == "abstain"
    assert "planning failed because of a fault in lagwise: TypeError" in reasons["damaged"][2]
    assert reasons["g"][0] == "publish"


@pytest.mark.parametrize(
    "state",
    [
        {"probation_until_ms": 10**18},
        {"probation_until_ms": "soon"},
        {"rates": {"client client-a": {"rate": "fast", "seen_at_ms": NOW_MS}}},
        {"rates": {"client client-a": {"rate": 1.0, "seen_at_ms": 10**18}}},
    ],
)
@pytest.mark.parametrize("make", ["plans", "abstentions"])
def test_damaged_state_of_one_group_is_forgotten_and_stops_nobody_else(
    make: str, state: dict[str, object]
) -> None:
    memory = PlanMemory(states={"damaged": json.dumps(state), "g": to_json(replace(FRESH, hurts=2))})
    stored = _stored([GROUP | {"group_id": "damaged"}, GROUP], LAGS)

    if make == "plans":
        rows = decided(stored, memory)
    else:
        rows = abstain(["damaged", "g"], SETTINGS, memory, reason="why").to_pylist()

    damaged, sound = rows
    assert damaged["decision"] == "abstain"
    assert "planning failed because of a fault in lagwise" in damaged["reason"]
    assert from_json(damaged["state"]) == FRESH
    assert (sound["decision"], sound["reason"]) == (
        ("publish", None) if make == "plans" else ("abstain", "why")
    )
    assert from_json(sound["state"]).hurts == 2


def test_plan_waits_in_its_row_until_a_row_of_orders_approves_it() -> None:
    config = SETTINGS.config.model_copy(update={"dry_run": "approve"})
    settings = replace(SETTINGS, config=config)
    (row,) = decided(_stored([GROUP], LAGS), settings=settings)
    approved = {
        "paused": False,
        "pinned": [],
        "ordered_at": at(1),
        "approved_at": at(1),
        "approved_by": "ann",
    }
    approved |= {"approved_target_hash": row["target_hash"], "approved_base_hash": row["base_hash"]}
    memory = PlanMemory(states={"g": row["state"]})

    (published,) = decided(_stored([GROUP], LAGS, orders=[approved]), memory, settings=settings)

    assert (row["decision"], row["record"], row["epoch"]) == ("awaiting_approval", None, None)
    assert (row["awaiting_since"], row["valid_until"]) == (at(0), at(config.valid_for_s))
    assert (published["decision"], published["epoch"], published["reason"]) == (
        "publish",
        1,
        "approved by ann",
    )
    assert published["awaiting_since"] is None
    assert published["assignment"] == row["assignment"]


@pytest.mark.parametrize(
    ("apart_s", "decision"), [(600, "publish"), (601, "unchanged"), (2_700, "unchanged")]
)
@pytest.mark.parametrize("is_rare", ["neither", "evaluations", "batches"])
def test_evaluations_are_in_a_row_up_to_ten_minutes_or_three_intervals_apart(
    apart_s: int, decision: str, is_rare: str
) -> None:
    guards = NO_GUARDS.model_copy(update={"confirmations": 2})
    config = SETTINGS.config.model_copy(update={"guards": guards})
    settings = replace(SETTINGS, config=config)
    if is_rare == "evaluations":
        settings = replace(settings, config=config.model_copy(update={"interval_s": 900}))
    elif is_rare == "batches":
        settings = replace(settings, batch_interval_s=900)
    (row,) = decided(
        _stored([GROUP], LAGS), settings=replace(settings, now_ms=settings.now_ms - apart_s * 1000)
    )

    (again,) = decided(_stored([GROUP], LAGS), PlanMemory(states={"g": row["state"]}), settings=settings)

    assert row["decision"] == "unchanged"
    assert again["decision"] == (decision if is_rare == "neither" else "publish")
