"""Scenarios: topics with uneven traffic, and groups that behave differently under it.

billing          range. All members are equally fast, but one holds the hot partitions and falls behind. Follows.
billing-plain    its control group: the same, but does not follow.
shipping         roundrobin. One member is half as fast as the others, and falls behind. Follows.
shipping-plain   its control group: the same, but does not follow.
search           cooperative-sticky, static members, even traffic: nothing to gain.
fraud            KIP-848: the broker assigns, so plans are advice.
refunds          KIP-848, one member is slow. Follows through the broker, whose assignor applies the plans; only where
                 there is a JDK.
refunds-plain    its control group: the same, but the broker assigns with Kafka's own assignor.
invoicing        members in Java, one of them slow. Follows, with the assignor of lagwise; only where there is a JDK.
export           uses assign(), so it has no members; too slow for its topic.

Traffic comes in phases, each with another hot spot. Those of billing begin with a burst, as after an outage of the
producers; shipping has steady traffic, and no backlog at the beginning.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

CLUSTER = "demo"
"""Name of the cluster, in the demo's configuration and on the control topic."""

PHASE_S = 240.0
"""Time for which the busiest partition of a topic stays the busiest."""

_HOT_SPOT_STEP = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic and its traffic."""

    name: str
    partitions: int
    records_per_s: float
    skew: float
    """Exponent of Zipf's law over the partitions; 0 is even."""
    burst_s: float = 0.0
    """Seconds of traffic that each phase begins with, all at once."""

    def rates(self, at_s: float) -> list[float]:
        """Records/s of each partition, `at_s` seconds after the start; they add up to `records_per_s`.

        The hot spot moves with every phase, so that no assignment stays good.
        """
        hottest = phase_at(at_s) * _HOT_SPOT_STEP
        ranks = [1 + (number - hottest) % self.partitions for number in range(self.partitions)]
        weights = [rank**-self.skew for rank in ranks]
        total = sum(weights)
        return [self.records_per_s * weight / total for weight in weights]


def phase_at(at_s: float) -> int:
    """Number of the phase, from 0."""
    return int(at_s // PHASE_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group and its consumers."""

    group_id: str
    topics: tuple[str, ...]
    speeds: tuple[int, ...]
    """Capacity of each member, records/s."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Additional properties of its consumers."""
    is_static: bool = False
    subscribes: bool = True
    """Whether consumers join the group instead of using assign()."""
    follows: bool = False
    """Whether they follow plans of the control topic."""
    is_java: bool = False
    """Whether its members are in Java, with properties of the Java client."""
    note: str = ""
    """Cause of its lag, for the title of its plot."""
    commit_s: float = 1.0
    """Seconds between two commits of a member."""

    @property
    def is_kip848(self) -> bool:
        """Whether the broker assigns its partitions, so that it follows through the broker's assignor."""
        return self.properties.get("group.protocol") == "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Topics with their traffic, and the groups that consume them."""

    topics: tuple[Topic, ...]
    groups: tuple[Group, ...]

    def pairs(self) -> tuple[tuple[Group, Group], ...]:
        """Each following group with its control group, which has no other difference."""
        return tuple(
            (group, other)
            for group in self.groups
            for other in self.groups
            if group.follows and replace(group, group_id=other.group_id, follows=False) == other
        )

    def to_json(self) -> str:
        """The scenario as text, for its processes."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Scenario":
        """The scenario from `to_json`."""
        read = json.loads(text)
        groups = (
            {**group, "topics": tuple(group["topics"]), "speeds": tuple(group["speeds"])}
            for group in read["groups"]
        )
        return cls(
            topics=tuple(Topic(**topic) for topic in read["topics"]),
            groups=tuple(Group(**group) for group in groups),
        )


def with_control(following: Group) -> tuple[Group, Group]:
    """A group that follows, and its control group."""
    return following, replace(following, group_id=f"{following.group_id}-plain", follows=False)


_BILLING = Group(
    group_id="billing",
    topics=("orders",),
    speeds=(450, 450, 450, 450),
    properties={"partition.assignment.strategy": "range"},
    follows=True,
    note="equal members, one has the hot partitions",
)
_SHIPPING = Group(
    group_id="shipping",
    topics=("parcels",),
    speeds=(120, 240, 240, 240),
    properties={"partition.assignment.strategy": "roundrobin"},
    follows=True,
    note="one member is half as fast",
)

BESIDE = Scenario(
    topics=(
        Topic(name="clicks", partitions=8, records_per_s=600, skew=0.0),
        Topic(name="payments", partitions=6, records_per_s=300, skew=1.0),
    ),
    groups=(
        Group(
            group_id="search",
            topics=("clicks",),
            speeds=(600, 600),
            properties={"partition.assignment.strategy": "cooperative-sticky"},
            is_static=True,
        ),
        Group(
            group_id="fraud",
            topics=("payments",),
            speeds=(250, 250),
            properties={"group.protocol": "consumer"},
        ),
        Group(group_id="export", topics=("payments",), speeds=(240,), subscribes=False),
    ),
)
"""Groups from the beginning of the demo."""

JAVA = Scenario(
    topics=(Topic(name="invoices", partitions=12, records_per_s=200, skew=1.0, burst_s=20),),
    groups=(
        Group(
            group_id="invoicing",
            topics=("invoices",),
            speeds=(80, 240),
            properties={"partition.assignment.strategy": "lagwise.follow.LagwiseAssignor"},
            follows=True,
            is_java=True,
            note="one member is slow",
        ),
    ),
)
"""Runs with `PAIRED`, without a control group, to save resources of the machine."""

KIP848 = Scenario(
    # Even traffic: which half of the partitions a member gets depends on its random id.
    topics=(Topic(name="returns", partitions=6, records_per_s=360, skew=0.0, burst_s=5),),
    groups=with_control(
        Group(
            group_id="refunds",
            topics=("returns",),
            speeds=(100, 440),
            properties={
                "group.protocol": "consumer",
                # By large fetches a slow member reads, and commits, one partition for a long time, then the next.
                "fetch.message.max.bytes": "4096",
            },
            follows=True,
            note="KIP-848, one member is slow",
        )
    ),
)
"""Runs with `PAIRED`, on a broker with lagwise's assignor."""

PAIRED = Scenario(
    topics=(
        Topic(name="orders", partitions=60, records_per_s=600, skew=0.8, burst_s=40),
        Topic(name="parcels", partitions=60, records_per_s=600, skew=0.8),
    ),
    groups=(*with_control(_BILLING), *with_control(_SHIPPING)),
)
"""Groups and their control groups, which start together once the stream runs."""
