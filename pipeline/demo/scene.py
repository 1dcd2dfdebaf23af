"""The scene: topics whose traffic is uneven, and groups that cope with it in different ways.

billing    range. All members are equally fast, but one holds the hot partitions and is buried.
shipping   cooperative-sticky, two topics, members of different speeds.
search     roundrobin on a topic with even traffic: little to gain.
fraud      KIP-848: the broker assigns, so no plan is made.
export     takes its partitions with assign(), so it has no members; too slow for its topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

HOT_SPOT_S = 120.0
"""How long the busiest partition of a topic stays the busiest."""

_HOT_SPOT_STEP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic and its traffic."""

    name: str
    partitions: int
    records_per_s: float
    skew: float
    """Exponent of Zipf's law over the partitions; 0 is even."""

    def rates(self, at_s: float) -> list[float]:
        """Records/s of each partition, `at_s` seconds after the start; they add up to `records_per_s`.

        The hot spot moves on every `HOT_SPOT_S`, so that yesterday's good assignment does not stay one.
        """
        hottest = int(at_s // HOT_SPOT_S) * _HOT_SPOT_STEP
        ranks = [1 + (number - hottest) % self.partitions for number in range(self.partitions)]
        weights = [rank**-self.skew for rank in ranks]
        return [self.records_per_s * weight / sum(weights) for weight in weights]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group and its consumers."""

    group_id: str
    topics: tuple[str, ...]
    speeds: tuple[int, ...]
    """Records/s that each member can process."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """How its consumers differ from others."""
    is_static: bool = False
    subscribes: bool = True
    """Whether the consumers join the group, or take all partitions with assign()."""


TOPICS = (
    Topic(name="orders", partitions=12, records_per_s=900, skew=0.8),
    Topic(name="payments", partitions=6, records_per_s=300, skew=1.0),
    Topic(name="clicks", partitions=8, records_per_s=600, skew=0.0),
)

GROUPS = (
    Group(
        group_id="billing",
        topics=("orders",),
        speeds=(370, 370, 370, 370),
        properties={"partition.assignment.strategy": "range"},
        is_static=True,
    ),
    Group(
        group_id="shipping",
        topics=("orders", "payments"),
        speeds=(700, 450, 250),
        properties={"partition.assignment.strategy": "cooperative-sticky"},
    ),
    Group(
        group_id="search",
        topics=("clicks",),
        speeds=(600, 600),
        properties={"partition.assignment.strategy": "roundrobin"},
    ),
    Group(
        group_id="fraud",
        topics=("payments",),
        speeds=(250, 250),
        properties={"group.protocol": "consumer"},
    ),
    Group(group_id="export", topics=("payments",), speeds=(240,), subscribes=False),
)
