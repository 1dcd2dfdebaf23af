"""Plan: the tables to one decision for each group.

Everything is Arrow, and runs in Spark's tasks, each with a share of the groups. One group's decision is
`pipeline.planning.decide.deciding`; this module only brings tables to it and rows back.
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from assignor.protocol.migration import Migration
from pipeline.config.model import GuardsConfig, PlanConfig
from pipeline.planning import reasons
from pipeline.planning.asking import answered
from pipeline.planning.decide import deciding
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules
from pipeline.planning.guards import Guards
from pipeline.planning.memory import PlanMemory
from pipeline.planning.problem.evidence import Evidence, EvidenceAsked, evidence
from pipeline.planning.rows.facts_of_rows import group_facts
from pipeline.planning.rows.partitions import GroupPartitions
from pipeline.planning.rows.row_of_decision import to_row
from pipeline.planning.state import FRESH, UNSEEN_MS, GroupState, from_json
from pipeline.planning.values import Decision, Verdict
from pipeline.tables.arrow import arrow_schema
from pipeline.tables.schemas import PLAN_STATE

_RATES = t.ArrayType(
    t.StructType(
        [
            t.StructField("identity", t.StringType()),
            t.StructField("rate", t.DoubleType()),
            t.StructField("shown_rate", t.DoubleType()),
            t.StructField("shown_at", t.TimestampType()),
            t.StructField("seen_at", t.TimestampType()),
        ]
    )
)
_LATER = {"cluster", "recorded_at"}
_TOGETHER = 256
"""Groups whose evidence is looked at together: with more of them there is nothing to gain, and arrays grow."""
_MISSED = 3
"""Evaluations may come this many intervals apart and still be in a row: the driver restarts, groups wait their turn."""
_NO_GROUP: Mapping[str, Any] = dict.fromkeys(
    (
        "group_type",
        "state",
        "protocol_type",
        "assignor",
        "generation",
        "members",
        "reconciliation",
        "target_epoch",
        "offsets_partition",
        "unconfirmed_reason",
    )
)
"""A group that only commits offsets."""
DECIDED = t.StructType(
    [*(field for field in PLAN_STATE if field.name not in _LATER), t.StructField("rates", _RATES)]
)
"""Columns of `schemas.PLAN_STATE` that depend on one decision alone, and the learned rates of the group's members."""
DECIDED_ARROW = arrow_schema(DECIDED)

LAG_COLUMNS = (
    *("group_id", "topic", "partition", "offsets_partition"),
    *("committed_offset", "commit_timestamp", "lag", "lag_seconds", "drain_rate"),
    *("lag_at_commit", "least_lag_at_commit", "unconfirmed_reason"),
    *("commit_interval_seconds", "commit_rate", "commit_span_seconds"),
)
"""Columns of `schemas.PARTITION_LAG` that decisions need."""
_UNCONFIRMED = ("group_id", "unconfirmed_reason")
TOPIC_COLUMNS = (
    *("topic", "partition", "log_start_offset", "log_end_offset", "readable_offset", "last_stable_offset"),
    *("observed_at", "arrival_rate", "error", "deleted_at"),
)
"""Columns of `schemas.TOPIC_OFFSETS` that decisions need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """Inputs of decisions apart from the tables."""

    cluster: str
    config: PlanConfig
    half_life_ms: int
    """See `Rules`."""
    max_record_bytes: int
    batch_interval_s: int
    """Decisions are made at batches, which come this far apart."""
    at_ms: int
    """Clock of the batch: when it began."""
    now_ms: int
    """When it decides: plans are valid from then on, however long the batch took until here."""
    batch_id: int
    least_epoch: int
    """See `Rules`."""
    behind: tuple[int, ...]
    """Partitions of the offsets topic whose groups are provisional."""
    provisional_reason: str | None
    held: str | None = None
    """Reason why no group may get a plan now; None if groups may."""
    held_groups: Mapping[str, str] = field(default_factory=dict)
    """The same for single groups."""
    migration: Migration = "unknown"
    """Whether brokers migrate classic groups online."""
    mistakable: Mapping[str, str] = field(default_factory=dict)
    """Groups that a broker could mistake for others, and why (`GroupFacts.mistakable`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """This batch's version of the tables that decisions depend on."""

    groups: pa.Table
    """`schemas.CONSUMER_GROUPS`."""
    lags: pa.Table
    """`LAG_COLUMNS`."""
    topic_offsets: pa.Table
    """`TOPIC_COLUMNS`."""
    acks: pa.Table
    """`fold.control_messages.about_plans`."""
    moved: pa.Table
    """`fold.control_messages.HANDED_OVER`."""
    orders: pa.Table
    """`schemas.ORDERS`."""


def subscribed_topics(groups: pa.Table) -> set[str]:
    """Every topic that a member of any of these groups subscribes to.

    Args:
        groups: `schemas.CONSUMER_GROUPS`.
    """
    members = pc.list_flatten(groups["members"])
    return set(pc.list_flatten(pc.struct_field(members, "topics")).unique().to_pylist())


def make_plans(
    stored: Stored, wanted: Collection[str], settings: PlanSettings, memory: PlanMemory
) -> pa.Table:
    """Return one row of `DECIDED` for each of these groups with members or commits, sorted by group.

    Args:
        stored: The tables; rows of other groups may be left out.
        wanted: Groups to decide about.
        settings: See `PlanSettings`.
        memory: Of the decisions before.
    """
    partitions = GroupPartitions(stored.topic_offsets, stored.lags)
    rows = list(_group_rows(stored, frozenset(wanted)))
    shares = [rows[begin : begin + _TOGETHER] for begin in range(0, len(rows), _TOGETHER)]
    decided = [
        (row["group_id"], decision)
        for share in shares
        for row, decision in zip(share, _decided(share, partitions, settings, memory), strict=True)
    ]
    return _table(decided, settings)


def abstain(wanted: Collection[str], settings: PlanSettings, memory: PlanMemory, *, reason: str) -> pa.Table:
    """Return one row of `DECIDED` for each of these groups, sorted: no plan, for this reason, and its memory stays.

    Args:
        wanted: Groups that have members or commits.
        settings: See `PlanSettings`.
        memory: Of the decisions before.
        reason: Why lagwise does not evaluate them.
    """
    decided = [
        (
            group_id,
            _abstained(_rules(group_id, settings), from_json(memory.states.get(group_id)), reason),
        )
        for group_id in sorted(wanted)
    ]
    return _table(decided, settings)


def _table(decided: Sequence[tuple[str, Decision]], settings: PlanSettings) -> pa.Table:
    """The decisions as rows of `DECIDED`; one that is damaged in a way that no row can hold becomes a fresh abstention.

    The state of an earlier decision may have come from another version, or have been edited by hand.
    """
    try:
        rows = [
            to_row(group_id, decision, at_ms=settings.at_ms, batch_id=settings.batch_id)
            for group_id, decision in decided
        ]
        return pa.Table.from_pylist(rows, schema=DECIDED_ARROW)
    except Exception as error:
        if len(decided) > 1:
            return pa.concat_tables([_table([one], settings) for one in decided])
        ((group_id, decision),) = decided
        if decision.state == FRESH:
            raise
        lost = Verdict(decided="abstain", reason=reasons.planning_failed(error))
        return _table([(group_id, Decision(strategy=decision.strategy, verdict=lost))], settings)


def _group_rows(stored: Stored, wanted: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Each group with everything but its partitions and what was decided before."""
    only = pa.array(sorted(wanted), pa.string())
    groups = stored.groups.filter(pc.is_in(stored.groups["group_id"], value_set=only))
    committed = stored.lags.group_by("group_id").aggregate([("offsets_partition", "min")]).to_pylist()
    commits_partition = {row["group_id"]: row["offsets_partition_min"] for row in committed}
    doubtful = stored.lags.filter(pc.is_valid(stored.lags["unconfirmed_reason"]))
    unconfirmed = dict(zip(*(doubtful[name].to_pylist() for name in _UNCONFIRMED), strict=True))
    acks, moved = _by_group(stored.acks), _by_group(stored.moved)
    orders = {row["group_id"]: row for row in stored.orders.to_pylist()}
    known = {row["group_id"]: row for row in groups.to_pylist()}
    for group_id in sorted(wanted & (known.keys() | commits_partition.keys())):
        yield {
            **(group := known.get(group_id, _NO_GROUP)),
            "group_id": group_id,
            "commits_partition": commits_partition.get(group_id),
            "unconfirmed_reason": group["unconfirmed_reason"] or unconfirmed.get(group_id),
            "acks": acks.get(group_id, []),
            "orders": orders.get(group_id),
            "moved": moved.get(group_id, []),
        }


def _by_group(rows: pa.Table) -> Mapping[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["group_id"], []).append(row)
    return found


def _decided(
    rows: Sequence[Mapping[str, Any]], partitions: GroupPartitions, settings: PlanSettings, memory: PlanMemory
) -> list[Decision]:
    """The decision about each group; what they ask of commits is answered for all of them together."""
    asking = [_deciding(row, partitions, settings, memory) for row in rows]
    return answered(asking, partial(evidence, now_ms=settings.now_ms))


def _deciding(
    row: Mapping[str, Any], partitions: GroupPartitions, settings: PlanSettings, memory: PlanMemory
) -> Generator[EvidenceAsked, Evidence, Decision]:
    group_id = row["group_id"]
    rules, before = _rules(group_id, settings), from_json(memory.states.get(group_id))
    try:
        group = group_facts(
            row,
            cluster=settings.cluster,
            behind=settings.behind,
            provisional_reason=settings.provisional_reason,
            held=settings.held or settings.held_groups.get(group_id),
            at_ms=settings.at_ms,
        )
        found = _subscribed(group, partitions)
        published = memory.published.get(group_id)
        group = replace(group, mistakable=settings.mistakable.get(group_id))
        return (yield from deciding(group, found, rules, published, before, now_ms=settings.now_ms))
    except Exception as error:  # noqa: BLE001 - a fault that one group brings to light must not stop all others
        return _abstained(rules, before, reasons.planning_failed(error))


def _abstained(rules: Rules, before: GroupState, reason: str) -> Decision:
    return Decision(strategy=rules.strategy, verdict=Verdict(decided="abstain", reason=reason), state=before)


def _subscribed(group: GroupFacts, partitions: GroupPartitions) -> PartitionFacts:
    return partitions.of(group.group_id, {topic for member in group.members for topic in member.topics})


def _rules(group_id: str, settings: PlanSettings) -> Rules:
    config = settings.config
    own = config.for_group(group_id)
    return Rules(
        cluster=settings.cluster,
        strategy=own.strategy,
        options=own.options,
        auto_offset_reset=own.auto_offset_reset,
        exclude=own.exclude,
        dry_run=own.dry_run is True,
        needs_approval=own.dry_run == "approve",
        broker_follows=own.follow == "broker",
        max_staleness_ms=config.max_staleness_s * 1000,
        valid_for_ms=config.valid_for_s * 1000,
        max_record_bytes=settings.max_record_bytes,
        half_life_ms=settings.half_life_ms,
        unseen_ms=max(UNSEEN_MS, _MISSED * 1000 * max(config.interval_s, settings.batch_interval_s)),
        guards=guard_limits(own.guards),
        least_epoch=settings.least_epoch,
        migration=settings.migration,
    )


def guard_limits(guards: GuardsConfig) -> Guards:
    """The guards as a decision takes them, in milliseconds."""
    return Guards(
        min_improvement=guards.min_improvement,
        confirmations=guards.confirmations,
        settle_ms=guards.settle_s * 1000,
        min_lag=guards.min_lag,
        min_lag_ms=guards.min_lag_s * 1000,
        cooldown_ms=guards.cooldown_s * 1000,
        cooldown_max_ms=guards.cooldown_max_s * 1000,
        moves_share=guards.moves_share,
        partition_rest_ms=guards.partition_rest_s * 1000,
        partition_moves_per_day=guards.partition_moves_per_day,
        pin=guards.pin,
    )
