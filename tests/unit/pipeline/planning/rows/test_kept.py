"""What is kept of decisions: the newest of each group, history where something differs, and rates of members."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from pipeline.planning.rows import kept
from pipeline.planning.rows.causes import cause_of
from pipeline.planning.step import DECIDED
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import MEMBER_RATES, PLAN_STATE, RECOMMENDATIONS
from tests.support.job.frames import at

_HELD = "held back by cooldown: 30 s of the 300 s after the last plan remain; 2 partition(s) stay with their owner"
_LAST = {"group_id": "g", "decision": "unchanged", "strategy": "lag-sticky", "reason": _HELD}
_LAST |= {"target_hash": "t", "base_hash": "b", "plan": {"epoch": 3, "status": "open", "moves_made": 0}}


def decided(*rows: dict[str, Any], at_s: float) -> pa.Table:
    shared = {"updated_at": at(at_s), "batch_id": 1, "rates": []}
    return pa.Table.from_pylist([_LAST | shared | row for row in rows], schema=arrow_schema(DECIDED))


def newest(before: pa.Table, *rows: dict[str, Any], at_s: float) -> pa.Table:
    return kept.newest_decisions(before, decided(*rows, at_s=at_s), cluster="local")


@pytest.fixture
def before() -> pa.Table:
    """What was decided about g a minute ago, and recorded half an hour ago."""
    nothing = pa.Table.from_pylist([], schema=arrow_schema(PLAN_STATE))
    first = newest(nothing, {}, at_s=-1800)
    return newest(first, {}, at_s=-60)


def test_first_decision_about_a_group_is_recorded_and_the_same_again_is_not(before: pa.Table) -> None:
    again = newest(before, {}, {"group_id": "new"}, at_s=0)

    assert dict(zip(*again.select(["group_id", "recorded_at"]).to_pydict().values(), strict=True)) == {
        "g": at(-1800),
        "new": at(0),
    }
    assert kept.history(again)["group_id"].to_pylist() == ["new"]


@pytest.mark.parametrize(
    "difference",
    [
        {"decision": "abstain"},
        {"reason": "held back by settle: generation 7 is 3 s old, less than settle_s = 30 s"},
        {"reason": "the group has its target assignment"},
        {"target_hash": "another"},
        {"base_hash": "another"},
        {"strategy": "sticky"},
        {"plan": {"epoch": 3, "status": "applied"}},
        {"plan": {"epoch": 4, "status": "open"}},
        {"plan_effect": "hurt"},
        {"probation_until": at(600)},
        {"decision": "publish", "epoch": 4},
        {"decision": "awaiting_approval"},
    ],
    ids=str,
)
def test_decision_that_differs_is_recorded(before: pa.Table, difference: dict[str, Any]) -> None:
    assert kept.history(newest(before, difference, at_s=0)).num_rows == 1


def test_every_refused_approval_is_recorded() -> None:
    refused = {"reason": "approval refused: no plan of the group waits for approval (approved by ann@desk)"}
    nothing = pa.Table.from_pylist([], schema=arrow_schema(PLAN_STATE))

    once = newest(nothing, refused, at_s=-2)

    assert kept.history(newest(once, refused, at_s=-1)).num_rows == 1


@pytest.mark.parametrize(
    "figures",
    [
        {"reason": _HELD.replace("30 s", "15 s")},
        {"drain_s_before": 12.5, "imbalance_before": 0.1},
        {"plan": {"epoch": 3, "status": "open", "moves_made": 2}},
    ],
    ids=str,
)
def test_other_figures_alone_are_not_recorded_within_an_hour(
    before: pa.Table, figures: dict[str, Any]
) -> None:
    assert kept.history(newest(before, figures, at_s=0)).num_rows == 0
    assert kept.history(newest(before, figures, at_s=1799)).num_rows == 0
    assert kept.history(newest(before, figures, at_s=1800)).num_rows == 1


def test_every_plan_that_is_sent_is_recorded_even_if_it_is_the_same_again() -> None:
    sent = {"decision": "publish", "reason": None, "epoch": 4}
    nothing = pa.Table.from_pylist([], schema=arrow_schema(PLAN_STATE))
    first = newest(nothing, sent, at_s=-60)

    assert kept.history(newest(first, sent | {"epoch": 5}, at_s=0)).num_rows == 1


def test_history_has_the_columns_of_its_table_and_the_day(before: pa.Table) -> None:
    rows = kept.history(newest(before, {"decision": "abstain"}, at_s=0))

    assert set(rows.schema.names) == set(RECOMMENDATIONS.fieldNames())
    assert rows.select(["date", "created_at"]).to_pylist() == [{"date": at(0).date(), "created_at": at(0)}]


def test_groups_that_were_not_decided_about_stay_until_they_are_too_old(before: pa.Table) -> None:
    day = timedelta(days=1).total_seconds()
    other = newest(before, {"group_id": "other"}, at_s=0)

    assert set(kept.merged(before, other, keep_days=1)["group_id"].to_pylist()) == {"g", "other"}
    late = newest(before, {"group_id": "other"}, at_s=day - 60)
    assert set(kept.merged(before, late, keep_days=1)["group_id"].to_pylist()) == {"g", "other"}
    later = newest(before, {"group_id": "other"}, at_s=day)
    assert kept.merged(before, later, keep_days=1)["group_id"].to_pylist() == ["other"]


def test_newer_decision_replaces_the_one_before(before: pa.Table) -> None:
    again = newest(before, {"reason": "another"}, at_s=0)

    (row,) = kept.merged(before, again, keep_days=1).to_pylist()

    assert (row["reason"], row["cluster"]) == ("another", "local")
    assert set(row) == set(PLAN_STATE.fieldNames())


def test_each_members_rate_is_a_row() -> None:
    rates = [
        {"identity": "a", "rate": 5.0, "shown_rate": 7.0, "shown_at": at(-9), "seen_at": at(0)},
        {"identity": "b", "rate": 1.0, "shown_rate": None, "shown_at": None, "seen_at": at(-1)},
    ]
    rows = kept.member_rates(decided({"rates": rates}, {"group_id": "h"}, at_s=0), cluster="local")

    assert set(rows.schema.names) == set(MEMBER_RATES.fieldNames())
    assert rows.select(list(rates[0])).to_pylist() == rates
    assert rows["group_id"].to_pylist() == ["g", "g"]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (None, ""),
        (_HELD, "held back by cooldown"),
        (
            "plan epoch 3 is under way: 2 of 5 moves are made",
            "plan epoch # is under way: # of # moves are made",
        ),
        ("no move: no member needs more than 1.5e+03 s; 3 pinned", "no move: no member needs more than # s"),
    ],
)
def test_cause_in_a_reason_is_without_figures(reason: str | None, words: str) -> None:
    assert cause_of(reason) == words
