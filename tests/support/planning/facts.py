"""Short builders for what a decision about a group is made from."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import GroupFacts, MemberFacts, PartitionFacts, Reconciliation, Rules
from pipeline.planning.guards import Guards

NOW_MS = 1_700_000_000_000

NO_GUARDS = Guards(
    min_improvement=0,
    confirmations=1,
    settle_ms=0,
    min_lag=0,
    min_lag_ms=0,
    cooldown_ms=0,
    cooldown_max_ms=0,
    moves_share=1,
    partition_rest_ms=0,
    partition_moves_per_day=1_000_000,
)

RULES = Rules(
    cluster="local",
    strategy="lag-aware",
    auto_offset_reset="earliest",
    exclude=False,
    dry_run=False,
    max_staleness_ms=90_000,
    valid_for_ms=600_000,
    max_record_bytes=1_000_000,
    half_life_ms=120_000,
    unseen_ms=600_000,
    guards=NO_GUARDS,
    least_epoch=1,
)


def group(assigned: Mapping[str, Mapping[str, tuple[int, ...]]], **changes: object) -> GroupFacts:
    """A stable classic group: each member reads topic t and what it was assigned."""
    members = tuple(
        MemberFacts(
            member_id=name, client_id=f"client-{name}", client_host="/h", topics=("t",), assigned=partitions
        )
        for name, partitions in assigned.items()
    )
    facts = GroupFacts(
        group_id="g",
        group_type="classic",
        state="Stable",
        protocol_type="consumer",
        assignor="range",
        generation=4,
        members=members,
    )
    return replace(facts, **changes)  # type: ignore[arg-type]  # the tests know their types


def kip848_group(assigned: Mapping[str, Mapping[str, tuple[int, ...]]], **changes: object) -> GroupFacts:
    """A stable group of `group.protocol=consumer`, of which everything is known."""
    facts = group(assigned, group_type="consumer", protocol_type=None, assignor="uniform")
    members = tuple(replace(member, reconciliation=Reconciliation()) for member in facts.members)
    return replace(facts, members=members, **changes)  # type: ignore[arg-type]  # the tests know their types


def partitions(lags: list[int | None], *, topic: str = "t", observed_at_ms: int = NOW_MS) -> PartitionFacts:
    """Partitions of one topic whose log holds 1,000,000 records from offset 0; a lag of None: never committed."""
    n = len(lags)
    end = 1_000_000
    return PartitionFacts(
        topic=[topic] * n,
        partition=np.arange(n),
        committed=np.array([UNKNOWN if lag is None else end - lag for lag in lags], np.int64),
        log_start=np.zeros(n, np.int64),
        log_end=np.full(n, end, np.int64),
        observed_at_ms=np.full(n, observed_at_ms, np.int64),
        arrival_rate=np.zeros(n),
        drain_rate=np.full(n, np.nan),
        lag_age_s=np.full(n, 60.0),
        lag_at_commit=np.array([UNKNOWN if lag is None else lag for lag in lags], np.int64),
        commit_age_s=np.array([np.nan if lag is None else 0.0 for lag in lags]),
        commit_interval_s=np.full(n, np.nan),
        commit_rate=np.full(n, np.nan),
        commit_span_s=np.full(n, np.nan),
        least_lag=np.full(n, UNKNOWN, np.int64),
    )


def draining(facts: PartitionFacts, rates: list[float]) -> PartitionFacts:
    """The partitions as they are drained between two commits half a minute apart, the lag being what it is at both."""
    drained = np.array(rates)
    return replace(
        facts,
        drain_rate=drained,
        commit_rate=drained,
        commit_span_s=np.where(np.isnan(drained), np.nan, 30.0),
        least_lag=facts.lag_at_commit,
    )


def committing(
    arriving: list[float],
    *,
    drained: list[float] | None = None,
    behind: list[int] | None = None,
    every_s: float = 60.0,
    ago_s: float = 0.0,
    observed_at_ms: int = NOW_MS,
) -> PartitionFacts:
    """Partitions whose group commits every so many seconds, in another span of at least half a minute.

    Args:
        arriving: Records/s of each partition.
        drained: Records/s that its commits advance; what arrives if not given.
        behind: Lag at both commits; none if not given. What has arrived since the newer one is lag, too.
        every_s: The usual commit interval.
        ago_s: Age of the newest commit.
        observed_at_ms: Time of the log ends.
    """
    rates = np.array(arriving)
    at_commit = np.zeros(len(arriving), np.int64) if behind is None else np.array(behind, np.int64)
    lags = [round(one) for one in at_commit + rates * ago_s]
    late_s = np.divide(at_commit, rates, out=np.where(at_commit > 0, 3600.0, 0.0), where=rates > 0)
    advance = rates if drained is None else np.array(drained)
    return replace(
        partitions([*lags], observed_at_ms=observed_at_ms),
        arrival_rate=rates,
        drain_rate=advance,
        lag_age_s=np.where(np.array(lags) > 0, ago_s + late_s, 0.0),
        lag_at_commit=at_commit,
        commit_age_s=np.full(len(lags), ago_s),
        commit_interval_s=np.full(len(lags), every_s),
        commit_rate=advance,
        commit_span_s=np.full(len(lags), max(every_s, 30.0)),
        least_lag=at_commit,
    )
