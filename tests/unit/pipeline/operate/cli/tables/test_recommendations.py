import json
import re
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from pipeline.tables.schemas import RECOMMENDATIONS
from tests.support.operate.table_world import NOON, World

_PLAN: dict[str, Any] = {
    "epoch": 17,
    "strategy": "lag-aware",
    "reason": "drains-sooner",
    "moves": [{"topic": "t", "partition": 9, "from": "m1", "to": "m2", "lag": 500}],
    "assignment": {"m2": {"t": "9", "a": "0-3"}, "m1": {}},
    "drain_s_before": 412.0,
    "drain_s_after": 121.5,
}


def _write_four(world: Any) -> None:
    decisions = ("publish", "abstain", "unchanged", "dry_run")
    world.write(
        "recommendations",
        *(
            _PLAN | {"decision": decision, "epoch": age, "created_at": NOON - timedelta(minutes=age)}
            for age, decision in enumerate(decisions)
        ),
    )


def test_newest_come_first(world: Any) -> None:
    _write_four(world)

    assert [line[3] for line in world.lines("recommendations", "--last", "3")] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("arguments", "epochs"),
    [
        (["--decision", "publish"], ["0"]),
        (["--decision", "dry_run", "--decision", "abstain"], ["1", "3"]),
        (["--group", "billing", "--decision", "unchanged"], ["2"]),
        (["--group", "other"], []),
    ],
)
def test_filters_hold_together(world: Any, arguments: list[str], epochs: list[str]) -> None:
    _write_four(world)

    assert [line[3] for line in world.lines("recommendations", *arguments)] == epochs


def test_line_has_figures_and_the_reason(world: Any) -> None:
    world.write("recommendations", _PLAN)

    assert world.lines("recommendations") == [
        [
            "2026-01-31T12:00:00Z",
            "billing",
            "publish",
            "17",
            "lag-aware",
            "1",
            "412.0",
            "121.5",
            "-",
            "drains-sooner",
        ]
    ]


def test_detail_says_what_became_of_the_plan_before(world: Any) -> None:
    plan = {
        "epoch": 16,
        "status": "partly",
        "why": "the plan expired (plan.valid_for_s)",
        "moves": 4,
        "moves_made": 3,
    }
    world.write(
        "recommendations", _PLAN | {"plan": plan | {"predicted_drain_s": 90.0, "realised_drain_s": 104.2}}
    )

    said = world.run("recommendations", "--detail").stdout

    assert (
        "plan epoch 16: partly, the plan expired (plan.valid_for_s); 3 of 4 moves made; drained in 104.2 s (predicted 90.0 s)"
        in said
    )


@pytest.mark.parametrize(
    ("status", "effect", "short", "story"),
    [
        ("applied", None, "16 applied", "not drained yet (predicted 90.0 s)"),
        ("applied", "helped", "16 applied, helped", "(predicted 90.0 s); helped: evidence"),
        ("superseded", "hurt", "16 superseded, hurt", "not drained by it (predicted 90.0 s); hurt: evidence"),
        ("expired", "cannot tell", "16 expired", "(predicted 90.0 s); cannot tell: evidence"),
    ],
)
def test_effect_of_the_plan_before_is_told_with_its_evidence(
    world: Any, status: str, effect: str | None, short: str, story: str
) -> None:
    plan = {"epoch": 16, "status": status, "moves": 4, "moves_made": 3, "predicted_drain_s": 90.0}
    evidence = "evidence" if effect else None
    world.write("recommendations", _PLAN | {"plan": plan, "plan_effect": effect, "plan_effect_why": evidence})

    assert world.run("recommendations", "--detail").stdout.splitlines()[3].endswith(story)
    assert f" {short} " in world.run("recommendations").stdout
    (row,) = json.loads(world.run("recommendations", "-o", "json").stdout)
    assert (row["plan_effect"], row["plan_effect_why"]) == (effect, evidence)


def test_detail_says_until_when_the_group_is_on_probation(world: Any) -> None:
    world.write("recommendations", _PLAN | {"probation_until": NOON})

    said = world.run("recommendations", "--detail").stdout

    assert "  on probation until 2026-01-31T12:00:00Z; `lagwise resume billing` ends it\n" in said


def test_tables_of_an_earlier_version_have_no_effects(world: Any) -> None:
    fields = {"group_id": "billing", "decision": "publish", "created_at": NOON, "cluster": "c"}
    for table, time in (("recommendations", "created_at"), ("plan_state", "updated_at")):
        row = {**fields, time: NOON, "recorded_at": NOON}
        write_deltalake(world.root / table, pa.Table.from_pylist([row]))

    assert world.run("recommendations", "--wide").exit_code == 0
    assert "billing  publish" in world.run("recommendations", "--detail").stdout


def test_detail_tells_moves_and_assignment(world: Any) -> None:
    world.write("recommendations", _PLAN)

    assert world.run("recommendations", "--detail").stdout.splitlines() == [
        "billing  publish  epoch 17  2026-01-31T12:00:00Z",
        "  lag-aware: drains-sooner",
        "  time to drain: 412.0 s as assigned, 121.5 s under the plan, never at best",
        "  move t-9: m1 -> m2 (lag 500)",
        "  m1: nothing",
        "  m2: a 0-3; t 9",
    ]


@pytest.mark.parametrize(
    ("figures", "cells", "story"),
    [
        (
            {"capacity_known": True},
            ["never", "never"],
            "never as assigned, never under the plan, never at best",
        ),
        (
            {"capacity_known": False},
            ["unknown", "unknown"],
            "unknown as assigned, unknown under the plan, unknown at best",
        ),
        # Of earlier versions.
        ({"drain_s_after": 9.0}, ["never", "9.0"], "never as assigned, 9.0 s under the plan, never at best"),
        (
            {},
            ["never or unknown", "never or unknown"],
            "never or unknown as assigned, never or unknown under the plan, never or unknown at best",
        ),
        ({"assignment": None}, ["-", "-"], None),
    ],
)
def test_time_to_drain_is_never_or_unknown_and_not_both(
    world: World, figures: dict[str, Any], cells: list[str], story: str | None
) -> None:
    none = {"drain_s_before": None, "drain_s_after": None}
    world.write("recommendations", _PLAN | none | figures)

    heads, line = world.run("recommendations").stdout.splitlines()
    times = [part for part in re.split(r"\s{2,}", line) if part][6:8]
    told = [one for one in world.run("recommendations", "--detail").stdout.splitlines() if "drain:" in one]

    assert heads.split()[6:8] == ["DRAIN-S-BEFORE", "DRAIN-S-AFTER"]
    assert times == cells
    assert told == ([f"  time to drain: {story}"] if story else [])


def test_decision_without_a_plan_has_a_short_story(world: Any) -> None:
    world.write("recommendations", {"decision": "abstain", "reason": "stale"})

    lines = world.run("recommendations", "--detail").stdout.splitlines()

    assert lines[0].startswith("billing  abstain  epoch -")
    assert len(lines) == 2


@pytest.mark.parametrize("arguments", [[], ["--detail"]])
def test_json_holds_moves_and_assignment(world: Any, arguments: list[str]) -> None:
    world.write("recommendations", _PLAN)

    (row,) = json.loads(world.run("recommendations", "-o", "json", *arguments).stdout)

    assert (row["moves"], row["assignment"]) == (_PLAN["moves"], _PLAN["assignment"])
    assert row.keys() <= set(RECOMMENDATIONS.fieldNames())


def test_unknown_decision_is_exit_status_2(world: Any) -> None:
    assert world.run("recommendations", "--decision", "nope").exit_code == 2


def test_newest_decision_is_shown_as_of_its_last_evaluation(world: Any) -> None:
    hour_ago, minute_ago = NOON - timedelta(hours=1), NOON - timedelta(minutes=1)
    held, reached = (
        {"decision": "unchanged", "reason": "held"},
        {"decision": "unchanged", "reason": "reached"},
    )
    world.write(
        "recommendations",
        held | {"created_at": hour_ago},
        reached | {"group_id": "other", "created_at": NOON},
    )
    world.write(
        "plan_state",
        held | {"reason": "held-still", "recorded_at": hour_ago, "updated_at": minute_ago},
        reached | {"group_id": "other", "recorded_at": NOON, "updated_at": NOON},
    )

    lines = world.lines("recommendations")

    assert [(line[1], line[-1]) for line in lines] == [
        ("other", "reached"),
        ("billing", "held-still"),
        ("billing", "held"),
    ]
    assert [line[-1] for line in world.lines("recommendations", "--group", "billing", "--last", "1")] == [
        "held-still"
    ]
    assert world.run("recommendations", "--decision", "abstain").exit_code == 1
