"""Members of one group: their partitions, speed and answers, and their partitions under the target."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from assignor.protocol.ranges import parse_ranges
from pipeline.operate.listings.totals import RATES, totals
from pipeline.operate.output import Row, iterate
from pipeline.operate.serve.views.plans import Key, Plan, answers
from pipeline.operate.statuses import rank

_MOST_PARTITIONS = 1_000_000
_WHO = ("member_id", "client_id", "client_host", "group_instance_id", "rack", "error")
_SUMS = (
    *("partitions", "lag", "unknown_lag", "old_lag", "max_lag", "lag_at_commit", "unknown_lag_at_commit"),
    *("lag_seconds", "lag_seconds_is_lower_bound", "unknown_lag_seconds", *RATES, "status"),
)


def member_rows(
    *,
    listed: Sequence[Row],
    lag: pa.Table,
    decision: Row | None,
    plan: Plan | None,
    capacities: Mapping[str, float | None],
) -> list[Row]:
    """Return a row per member, and one under null for unowned partitions; a partly known rate is null.

    Args:
        listed: As `lagwise groups --members` lists them.
        lag: Rows `with_is_old` of the group's partitions.
        decision: The newest decision, with its target and its moves; None if there is none.
        plan: The newest plan; None if there is no decision.
        capacities: Records/s that members drained with a backlog, by member id.
    """
    summed, _ = totals(lag, by="member")
    statuses = _worst_statuses(lag)
    sums = {row["member_id"]: {**row, "status": statuses[row["member_id"]]} for row in iterate(summed)}
    rows = {row["member_id"]: {name: row[name] for name in _WHO} | _sums(row, sums) for row in listed}
    for member_id, row in sums.items():
        # Partitions without an owner, and earlier owners that the group's newest records do not name.
        rows.setdefault(member_id, {**dict.fromkeys(_WHO), **row})
    said = answers(plan) if plan else {}
    after = _after(rows, lag, decision)
    return [
        {
            **{name: rows[member_id][name] for name in (*_WHO, *_SUMS)},
            "capacity": capacities.get(member_id),
            "answers": said.get(member_id, []),
            **after[member_id],
        }
        for member_id in sorted(rows, key=lambda one: (one is None, str(one)))
    ]


def _sums(row: Row, sums: Mapping[str | None, Row]) -> Row:
    """Lag of what the member owns: 0 if it owns nothing, None if any of it has no rows or is unknown."""
    own = sums.get(row["member_id"])
    if own is not None:
        return {name: own[name] for name in _SUMS}
    nothing = 0 if row["partitions"] == 0 else None
    return {
        **dict.fromkeys(_SUMS, nothing),
        **dict.fromkeys(RATES, None if nothing is None else 0.0),
        "partitions": row["partitions"],
        "lag_seconds_is_lower_bound": False,
        "status": None,
    }


def _worst_statuses(lag: pa.Table) -> dict[str | None, str]:
    found: dict[str | None, str] = {}
    for row in iterate(lag.group_by(["member_id", "status"]).aggregate([])):
        found[row["member_id"]] = min(found.get(row["member_id"], row["status"]), row["status"], key=rank)
    return found


def _after(rows: Iterable[str | None], lag: pa.Table, decision: Row | None) -> dict[str | None, Row]:
    """Each member's partitions under the target, and its moves; null if there is no target."""
    target = _target_of(decision["assignment"]) if decision else None
    if decision is None or target is None:
        return {
            one: dict.fromkeys(("partitions_after", "lag_after", "moves_from", "moves_to")) for one in rows
        }
    keys = {
        (row["topic"], row["partition"]): row for row in iterate(lag.select(["topic", "partition", "lag"]))
    }
    moves = decision["moves"] or ()
    taken, given = (Counter(move[side] for move in moves) for side in ("from", "to"))
    held_by = _held_by(target, keys)
    found: dict[str | None, Row] = {}
    for one in rows:
        held = held_by.get(one, ())
        lags: list[Any] = [keys[key]["lag"] if key in keys else None for key in held]
        found[one] = {
            "partitions_after": len(held),
            "lag_after": None if None in lags else sum(lags),
            "moves_from": taken[one],
            "moves_to": given[one],
        }
    return found


def _held_by(target: Mapping[str, Sequence[Key]], keys: Iterable[Key]) -> dict[str | None, Sequence[Key]]:
    """Partitions of each member under the target; under None, those without an owner."""
    kept = {key for own in target.values() for key in own}
    held: dict[str | None, Sequence[Key]] = {None: [key for key in keys if key not in kept]}
    held.update(target)
    return held


def _target_of(assignment: Mapping[str, Mapping[str, str]] | None) -> dict[str, list[Key]] | None:
    """Return the target partitions by member id; None without a target.

    Raises:
        DecodeError: lagwise did not write this text.
    """
    if assignment is None:
        return None
    return {
        member_id: [
            (topic, number)
            for topic, ranges in topics.items()
            for number in parse_ranges(ranges, at_most=_MOST_PARTITIONS)
        ]
        for member_id, topics in assignment.items()
    }
