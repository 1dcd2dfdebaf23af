"""The groups of the zoo: what each subscribes to, how it consumes and how it commits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

TOPICS = {"zoo-wide": 12, "zoo-even": 6, "zoo-small": 2, "zoo-out": 2}
"""Partitions of each topic; records of `zoo-out` are all written in transactions."""

_CLASSIC = {"heartbeat.interval.ms": "300", "session.timeout.ms": "45000"}
_RANGE = {**_CLASSIC, "partition.assignment.strategy": "range"}
_ROUNDROBIN = {**_CLASSIC, "partition.assignment.strategy": "roundrobin"}
_COOPERATIVE = {**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}
_KIP_848 = {"group.protocol": "consumer"}


class Commits(Enum):
    """How the members of a group commit."""

    AUTO = "by itself, in the background"
    MANUAL = "after every read"
    NEVER = "not at all"
    TRANSACTION = "within transactions that are all committed"
    ABORTED = "within transactions of which only the first is committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One group of the zoo."""

    group_id: str
    topics: tuple[str, ...] = ("zoo-even",)
    members: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    static: bool = False
    commits: Commits = Commits.AUTO
    take: int = 20
    """Records that a member reads in one round: its speed."""
    subscribes: bool = True
    """Whether it joins the group, or takes its partitions with assign()."""
    leaves: bool = False
    """Whether its members have left when the zoo opens."""

    @property
    def group_type(self) -> str:
        """As the tool prints it."""
        return "Consumer" if self.config == _KIP_848 else "Classic"

    @property
    def state(self) -> str:
        """As the tool prints it."""
        return "Stable" if self.subscribes and not self.leaves else "Empty"

    @property
    def assignor(self) -> str | None:
        """As the tool prints it; null when nobody is a member."""
        if self.state == "Empty":
            return None
        return self.config.get("partition.assignment.strategy", "uniform")

    @property
    def partitions(self) -> int:
        """Of all its topics together."""
        return sum(TOPICS[topic] for topic in self.topics)


KINDS = (
    Kind(group_id="zoo-range-1", config=_RANGE),
    Kind(group_id="zoo-range-3", config=_RANGE, members=3, take=3),
    Kind(group_id="zoo-range-two-topics", config=_RANGE, members=2, topics=("zoo-small", "zoo-wide")),
    Kind(group_id="zoo-range-more-members-than-work", config=_RANGE, members=3, topics=("zoo-small",)),
    Kind(group_id="zoo-roundrobin-1", config=_ROUNDROBIN, topics=("zoo-wide",), take=5),
    Kind(group_id="zoo-roundrobin-3", config=_ROUNDROBIN, members=3, topics=("zoo-even", "zoo-wide")),
    Kind(group_id="zoo-roundrobin-manual", config=_ROUNDROBIN, members=2, commits=Commits.MANUAL),
    Kind(group_id="zoo-cooperative-1", config=_COOPERATIVE),
    Kind(group_id="zoo-cooperative-3", config=_COOPERATIVE, members=3, topics=("zoo-wide",), take=2),
    Kind(
        group_id="zoo-cooperative-two-topics", config=_COOPERATIVE, members=2, topics=("zoo-even", "zoo-wide")
    ),
    Kind(group_id="zoo-static-range", config=_RANGE, members=2, static=True),
    Kind(
        group_id="zoo-static-cooperative", config=_COOPERATIVE, members=2, static=True, topics=("zoo-wide",)
    ),
    Kind(group_id="zoo-transactional", config=_RANGE, commits=Commits.TRANSACTION, topics=("zoo-small",)),
    Kind(group_id="zoo-transactional-aborted", config=_RANGE, commits=Commits.ABORTED),
    Kind(group_id="zoo-reads-transactional-topic", config=_RANGE, topics=("zoo-out",)),
    Kind(group_id="zoo-assign-1", subscribes=False, commits=Commits.MANUAL, take=1),
    Kind(
        group_id="zoo-assign-two-topics",
        subscribes=False,
        commits=Commits.MANUAL,
        topics=("zoo-small", "zoo-even"),
    ),
    Kind(group_id="zoo-848-1", config=_KIP_848),
    Kind(group_id="zoo-848-2", config=_KIP_848, members=2, topics=("zoo-wide",), take=4),
    Kind(group_id="zoo-848-static", config=_KIP_848, members=2, static=True),
    Kind(group_id="zoo-left-range", config=_RANGE, leaves=True),
    Kind(group_id="zoo-left-848", config=_KIP_848, leaves=True, topics=("zoo-small",)),
    Kind(group_id="zoo-uncommitted-range", config=_RANGE, commits=Commits.NEVER),
    Kind(group_id="zoo-uncommitted-848", config=_KIP_848, commits=Commits.NEVER, topics=("zoo-small",)),
)
