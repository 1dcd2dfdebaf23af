"""Members of groups and their partitions: numbers, idle members, observed capacities, skew of lag."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.fold.members import with_known_members
from pipeline.operate.listings.reconciling import behind_members
from pipeline.operate.output import iterate
from pipeline.operate.serve.views.facts import Facts
from pipeline.planning.facts import MemberFacts
from pipeline.planning.problem.capacity import identities


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    facts: MemberFacts
    has_unseen: bool
    """It was given partitions of topics without rows of lag."""
    topics: frozenset[str] | None
    """Its subscription; None if unknown."""


@dataclass(frozen=True, slots=True)
class _Owned:
    """Figures of one member's partitions from rows of lag; null if a part is unknown."""

    lag: int | None
    arrival_rate: float | None
    shareable: frozenset[str]
    """Topics of which another member could take a partition: empty if it owns only one partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Members of all groups."""

    by_group: Mapping[str, list[_Member] | None]
    """None if Kafka does not report them."""
    owned: Mapping[str, Mapping[str, _Owned]]
    """Members that own anything, by group and member id."""
    shown: Mapping[tuple[str, str], float | None]
    """Records/s that a member drained with a backlog, by group and identity."""
    stuck: Mapping[str, int]
    """Members of each KIP-848 group that are behind their target assignment for longer than their rebalance timeout."""

    def count(self, group_id: str) -> int | None:
        """Return the number of members; None if unknown."""
        members = self.by_group.get(group_id)
        return None if members is None else len(members)

    def idle(self, group_id: str) -> int | None:
        """Return the number of members without partitions; None if unknown."""
        return None if self.by_group.get(group_id) is None else len(self._idle_members(group_id))

    def _idle_members(self, group_id: str) -> list[_Member]:
        owners = self.owned.get(group_id, {})
        members = self.by_group.get(group_id) or ()
        return [one for one in members if one.facts.member_id not in owners and not one.has_unseen]

    def capacities(self, group_id: str) -> dict[str, float | None]:
        """Return the observed capacity of each member, records/s, by member id; None if not observed yet."""
        facts = [one.facts for one in self.by_group.get(group_id) or ()]
        return {
            member.member_id: self.shown.get((group_id, identity))
            for member, identity in zip(facts, identities(facts), strict=True)
        }

    def capacity_ratio(self, group_id: str) -> float | None:
        """Return arrivals divided by the observed capacity of the owners: above 1, no assignment helps.

        None unless all owners are observed, and while some partitions have no rows, for what arrives there is missing.
        An idle member that could take partitions counts as the fastest owner if the ratio is above 1 even so; otherwise
        the ratio is None, since what an idle member drains is unknown.
        """
        if any(one.has_unseen for one in self.by_group.get(group_id) or ()):
            return None
        owners, rates = self.owned.get(group_id, {}), self.capacities(group_id)
        of_owners = [(owners[name].arrival_rate, rate) for name, rate in rates.items() if name in owners]
        known = [
            (arriving, shown) for arriving, shown in of_owners if arriving is not None and shown is not None
        ]
        drained = sum(shown for _, shown in known)
        if len(known) < len(of_owners) or not drained:
            return None
        helpers = self._helpers(group_id, owners)
        most = drained + helpers * max(shown for _, shown in known)
        ratio = sum(arriving for arriving, _ in known) / most
        return ratio if not helpers or ratio > 1 else None

    def _helpers(self, group_id: str, owners: Mapping[str, _Owned]) -> int:
        """Number of idle members to which owners could give a partition; an unknown subscription may allow it."""
        shareable = frozenset[str]().union(*(one.shareable for one in owners.values()))
        if not shareable:
            return 0
        return sum(one.topics is None or bool(one.topics & shareable) for one in self._idle_members(group_id))

    def lag_skew(self, group_id: str) -> float | None:
        """(Largest - smallest) / total lag, of all members; 0 without lag, None if some lag is unknown."""
        members = self.by_group.get(group_id)
        if not members:
            return None
        owners = self.owned.get(group_id, {})
        if any(one.has_unseen for one in members):
            return None
        lags = [owners[m].lag if (m := one.facts.member_id) in owners else 0 for one in members]
        known = [lag for lag in lags if lag is not None]
        if len(known) < len(lags):
            return None
        return (max(known) - min(known)) / sum(known) if sum(known) else 0.0


def members_of(facts: Facts) -> Members:
    """The members of every group."""
    lag = facts.partition_lag
    topics = lag.group_by(["group_id", "topic"]).aggregate([])
    seen = set(zip(topics["group_id"].to_pylist(), topics["topic"].to_pylist(), strict=True))
    rates = facts.member_rates
    keys = zip(rates["group_id"].to_pylist(), rates["identity"].to_pylist(), strict=True)
    return Members(
        by_group=_by_group(with_known_members(facts.consumer_groups), seen),
        owned=_owned(lag),
        shown=dict(zip(keys, rates["shown_rate"].to_pylist(), strict=True)),
        stuck=_stuck(facts),
    )


def _stuck(facts: Facts) -> dict[str, int]:
    at = facts.as_of
    groups = facts.consumer_groups.filter(facts.consumer_groups["reconciliation"].is_valid())
    if at is None:
        return {}
    return {
        group["group_id"]: sum(one.is_stuck for one in behind_members(group, at)) for group in iterate(groups)
    }


def _by_group(groups: pa.Table, seen: set[tuple[str, str]]) -> dict[str, list[_Member] | None]:
    rows = zip(groups["group_id"].to_pylist(), groups["members"].to_pylist(), strict=True)
    return {
        group_id: None if members is None else [_member(group_id, one, seen) for one in members]
        for group_id, members in rows
    }


def _member(group_id: str, row: Mapping[str, Any], seen: set[tuple[str, str]]) -> _Member:
    assigned = row["assigned"]
    return _Member(
        facts=MemberFacts(
            member_id=str(row["member_id"]),
            instance_id=row["group_instance_id"],
            client_id=row["client_id"],
            client_host=row["client_host"],
        ),
        has_unseen=assigned is None
        or row["error"] is not None
        or any(numbers and (group_id, topic) not in seen for topic, numbers in assigned),
        topics=None if row["topics"] is None else frozenset(row["topics"]),
    )


def _owned(lag: pa.Table) -> dict[str, dict[str, _Owned]]:
    rows = lag.filter(lag["member_id"].is_valid()).select(
        ["group_id", "member_id", "topic", "lag", "arrival_rate"]
    )
    unknown = pc.CountOptions(mode="only_null")
    sums = rows.group_by(["group_id", "member_id"]).aggregate(
        [
            ("lag", "sum"),
            ("lag", "count", unknown),
            ("arrival_rate", "sum"),
            ("arrival_rate", "count", unknown),
            ("topic", "distinct"),
            ([], "count_all"),
        ]
    )
    owned: dict[str, dict[str, _Owned]] = defaultdict(dict)
    for row in sums.to_pylist():
        owned[row["group_id"]][row["member_id"]] = _Owned(
            lag=None if row["lag_count"] else row["lag_sum"],
            arrival_rate=None if row["arrival_rate_count"] else row["arrival_rate_sum"],
            shareable=frozenset(row["topic_distinct"] if row["count_all"] > 1 else ()),
        )
    return owned
