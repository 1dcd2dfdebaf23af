"""Decisions about groups, as `lagwise recommendations` lists them."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import MissingTableError
from pipeline.operate.output import Column, Row, names, plain
from pipeline.tables.reading import Readable, all_of

_NEWEST_FIRST = [("created_at", "descending"), ("group_id", "ascending"), ("cluster", "ascending")]


def _outcome(row: Row) -> str:
    """Outcome of the previous plan."""
    found = row["plan"]
    effect = f", {row['plan_effect']}" if row["plan_effect"] in {"helped", "hurt"} else ""
    return plain(None) if found is None else f"{found['epoch']} {found['status']}{effect}"


_TIMES = ("drain_s_before", "drain_s_after", "drain_s_bound")


def _drain(name: str) -> Callable[[Row], str]:
    """A cell with a time to drain; `-` without a target."""

    def cell(row: Row) -> str:
        return plain(row[name]) if row[name] is not None or row["assignment"] is None else no_time(row)

    return cell


COLUMNS = (
    Column(header="CREATED-AT", name="created_at"),
    Column(header="GROUP", name="group_id"),
    Column(header="DECISION", name="decision"),
    Column(header="EPOCH", name="epoch", is_number=True),
    Column(header="STRATEGY", name="strategy"),
    Column(header="MOVES", name="moves", cell=lambda row: str(len(row["moves"] or ())), is_number=True),
    Column(header="DRAIN-S-BEFORE", name="drain_s_before", cell=_drain("drain_s_before"), is_number=True),
    Column(header="DRAIN-S-AFTER", name="drain_s_after", cell=_drain("drain_s_after"), is_number=True),
    Column(header="PLAN-SO-FAR", name="plan", cell=_outcome),
    Column(header="REASON", name="reason"),
    Column(
        header="DRAIN-S-BOUND",
        name="drain_s_bound",
        cell=_drain("drain_s_bound"),
        is_number=True,
        is_wide=True,
    ),
    Column(header="CAPACITY-KNOWN", name="capacity_known", is_wide=True),
    Column(header="IMBALANCE-BEFORE", name="imbalance_before", is_number=True, is_wide=True),
    Column(header="IMBALANCE-AFTER", name="imbalance_after", is_number=True, is_wide=True),
    Column(header="GENERATION", name="base_generation", is_number=True, is_wide=True),
    Column(header="VALID-UNTIL", name="valid_until", is_wide=True),
    Column(header="AWAITING-SINCE", name="awaiting_since", is_wide=True),
    Column(header="EFFECT", name="plan_effect", is_wide=True),
    Column(header="PROBATION-UNTIL", name="probation_until", is_wide=True),
    Column(header="BATCH", name="batch_id", is_number=True, is_wide=True),
    Column(header="CLUSTER", name="cluster", is_wide=True),
)
"""Columns of `lagwise recommendations`."""
ASSIGNMENT = Column(header="ASSIGNMENT", name="assignment")
NEVER_OR_UNKNOWN = "never or unknown"
"""Predicted time of a published plan: the table does not distinguish the two."""
EFFECT_WHY = Column(header="EFFECT-WHY", name="plan_effect_why")
"""Additional columns of json and csv."""


def decisions(tables: Readable, wanted: pc.Expression | None) -> pa.Table:
    """Rows of the history, and the newest decisions that it lacks because they repeat the ones before."""
    columns = names((*COLUMNS, ASSIGNMENT, EFFECT_WHY))
    present = ["updated_at" if name == "created_at" else name for name in columns]
    is_again = pc.field("updated_at") > pc.field("recorded_at")
    try:
        # Read first: later decisions are in the history by the time that is read.
        again = tables.read("plan_state", columns=present, where=all_of(is_again, wanted))
    except MissingTableError:
        # An earlier version wrote these tables, with a row for every decision.
        return tables.read("recommendations", columns=columns, where=wanted)
    recorded = tables.read("recommendations", columns=columns, where=wanted)
    return pa.concat_tables([recorded, again.rename_columns(columns)], promote_options="permissive")


def newest(rows: pa.Table, last: int) -> pa.Table:
    """The newest of `decisions`, newest first."""
    keys = rows.drop(["moves", "assignment", "plan"])
    return rows.take(pc.sort_indices(keys, sort_keys=_NEWEST_FIRST)[:last])


def plan_story(row: Row) -> str:
    """Outcome of the plan that was published before a decision, as a sentence."""
    found = row["plan"]
    made = f"{found['moves_made']} of {found['moves']} moves made"
    why = f", {plain(found['why'])}" if found["why"] else ""
    predicted = NEVER_OR_UNKNOWN if (value := found["predicted_drain_s"]) is None else f"{value:.1f} s"
    realised = found["realised_drain_s"]
    waits = "yet" if found["status"] in {"open", "applied"} else "by it"
    drained = f"drained in {realised:.1f} s" if realised is not None else f"not drained {waits}"
    effect = f"; {row['plan_effect']}: {plain(row['plan_effect_why'])}" if row["plan_effect"] else ""
    return f"plan epoch {found['epoch']}: {found['status']}{why}; {made}; {drained} (predicted {predicted}){effect}"


def drain_words(row: Row, name: str) -> str:
    """A time to drain of a decision with a target."""
    return no_time(row) if row[name] is None else f"{row[name]:.1f} s"


def no_time(row: Mapping[str, Any]) -> str:
    """Why a decision with a target has no time to drain: `never` or `unknown`; both in a row of an earlier version.

    Such a row lacks `capacity_known`, but with any of the times it shows that the speed of the members was known.
    """
    known = row["capacity_known"]
    if known is None:
        return "never" if any(row[name] is not None for name in _TIMES) else NEVER_OR_UNKNOWN
    return "never" if known else "unknown"
