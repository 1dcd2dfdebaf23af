"""The groups that are measured: those the project has goals for, and Kafka's own grid.

Every case comes in several sizes, so that growth can be told. What was owned before a change is what Kafka's assignor
gave to the group before, so neither side has a start of its own making.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from assignor.strategies.registry import strategy
from tests.benchmarks.assignor_clocks import Kafka
from tests.benchmarks.assignor_groups import Shape, buckets, equal, windows

COOPERATIVE = "cooperative-sticky"
RANGE = "range"

_MILLION = 1_000_000
_TOPICS = 500
_GRID_TOPICS = 100
_GRID_RATIO = 10
"""Partitions per member."""
_DIVISORS = (1, 8, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is to be reached at full size."""

    arrays: float | None = None
    """So many times as fast as Kafka, from arrays to an array."""
    objects: float | None = None
    """The same from Python objects to Python objects."""
    at_most_ms: float | None = None
    """From arrays to an array."""

    @property
    def words(self) -> str:
        """The goal for a table."""
        forms = {
            "{:g} times": self.arrays,
            "{:g} times with objects": self.objects,
            "≤ {:g} ms": self.at_most_ms,
        }
        return ", ".join(form.format(value) for form, value in forms.items() if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One group in several sizes, and who assigns it."""

    name: str
    ours: str
    kafkas: str | None = None
    """Kafka's assignor, null where it has none."""
    shape: Callable[[Kafka, int], Shape]
    """The group, divided by a number."""
    divisors: tuple[int, ...] = _DIVISORS
    options: Callable[[Shape], Mapping[str, object]] = field(default=lambda _: {})
    reads_lag: bool = False
    has_no_lag: bool = False
    """Arrivals without lag: nobody is late, and only idle members are given something."""
    goal: Goal = field(default_factory=Goal)


def one_more(kafka: Kafka, shape: Shape) -> Shape:
    """The group right after its last member joined."""
    return shape.owned_by(kafka.settled(shape.first(shape.n_members - 1), COOPERATIVE))


def fewer(kafka: Kafka, shape: Shape) -> Shape:
    """The group right after its last tenth left."""
    return shape.owned_by(kafka.settled(shape, COOPERATIVE)).first(shape.n_members * 9 // 10)


def _million(divisor: int, members: int) -> Shape:
    return equal(partitions=_MILLION // divisor, topics=_TOPICS, members=members)


def _steady(shape: Shape) -> Shape:
    """The group as the sticky strategy leaves it."""
    return shape.owned_by(strategy("sticky").assign(shape.group(), {}).member)


def _sticky_case(
    name: str,
    shape: Callable[[Kafka, int], Shape],
    *,
    divisors: tuple[int, ...] = _DIVISORS,
    goal: Goal,
) -> Case:
    return Case(name=name, ours=COOPERATIVE, kafkas=COOPERATIVE, shape=shape, divisors=divisors, goal=goal)


def _lag_sticky_case(
    *, partitions: int, topics: int, members: int, divisors: tuple[int, ...], at_most_ms: float
) -> Case:
    """As many moves as members."""
    return Case(
        name=f"lag-sticky {partitions:,} x {members:,}, K = N",
        ours="lag-sticky",
        shape=lambda _, d: _steady(equal(partitions=partitions // d, topics=topics, members=members)),
        divisors=divisors,
        options=lambda shape: {"max_moves": shape.n_members},
        reads_lag=True,
        goal=Goal(at_most_ms=at_most_ms),
    )


def _after_range(*, partitions: int, topics: int, members: int, no_lag: bool = False) -> Case:
    """What `range` leaves, the last members idle, with the default budget of moves."""

    def shape(_: Kafka, divisor: int) -> Shape:
        fresh = equal(partitions=partitions // divisor, topics=topics, members=members // divisor)
        return fresh.owned_by(strategy(RANGE).assign(fresh.group(), {}).member)

    return Case(
        name=f"lag-sticky {partitions:,} x {members:,}, after range{', no lag' if no_lag else ''}",
        ours="lag-sticky",
        shape=shape,
        divisors=(1, 4, 16),
        reads_lag=True,
        has_no_lag=no_lag,
        goal=Goal(at_most_ms=_MILLION_MS if partitions == _MILLION else _SECOND_MS),
    )


_SECOND_MS = 1_000
_MILLION_MS = 2_500
_TENFOLD = Goal(arrays=10)
_WITH_OBJECTS = Goal(arrays=10, objects=2)

TABLE = (
    _sticky_case(
        "2,100 x 2,100, equal subscriptions",
        lambda _, d: equal(partitions=2_100 // d, topics=1, members=2_100 // d),
        divisors=(1, 4, 16),
        goal=_TENFOLD,
    ),
    _sticky_case("1,000,000 x 2,000, equal, fresh", lambda _, d: _million(d, 2_000), goal=_WITH_OBJECTS),
    _sticky_case(
        "1,000,000 x 2,000, equal, one member more",
        lambda kafka, d: one_more(kafka, _million(d, 2_001)),
        goal=_WITH_OBJECTS,
    ),
    _sticky_case(
        "1,000,000 x 2,000, equal, 10 % fewer members",
        lambda kafka, d: fewer(kafka, _million(d, 2_000)),
        goal=_WITH_OBJECTS,
    ),
    Case(
        name="range 1,000,000 x 2,000",
        ours=RANGE,
        kafkas=RANGE,
        shape=lambda _, d: _million(d, 2_000),
        goal=Goal(arrays=40),
    ),
    _sticky_case(
        "5,000 x 500, five buckets, one member more",
        lambda kafka, d: one_more(
            kafka, buckets(partitions=5_000 // d, topics=_GRID_TOPICS, members=500 // d)
        ),
        divisors=(1, 2, 5),
        goal=_TENFOLD,
    ),
    _sticky_case(
        "20,000 x 200, windows of 50 of 100 topics, fresh",
        lambda _, d: windows(partitions=20_000 // d, topics=100, members=200, width=50),
        divisors=(1, 4, 16),
        goal=Goal(arrays=2),
    ),
    Case(
        name="lag-aware 1,000,000 x 2,000",
        ours="lag-aware",
        shape=lambda _, d: _million(d, 2_000),
        reads_lag=True,
        goal=Goal(at_most_ms=150),
    ),
    _lag_sticky_case(partitions=10_000, topics=10, members=100, divisors=(1, 4, 16), at_most_ms=250),
    _lag_sticky_case(partitions=_MILLION, topics=100, members=2_000, divisors=_DIVISORS, at_most_ms=1_500),
    _after_range(partitions=2_100, topics=21, members=2_100),
    _after_range(partitions=2_100, topics=21, members=2_100, no_lag=True),
    _after_range(partitions=2_000, topics=10, members=10_000),
    _after_range(partitions=10_000, topics=10, members=2_000),
    _after_range(partitions=_MILLION, topics=1_000, members=2_000),
    _after_range(partitions=_MILLION, topics=1_000, members=2_000, no_lag=True),
)


def _grid_case(name: str, kafkas: str, make: Callable[..., Shape], divisors: tuple[int, ...]) -> Case:
    most = 10_000

    def shape(_: Kafka, divisor: int) -> Shape:
        members = most // divisor
        return make(partitions=members * _GRID_RATIO, topics=_GRID_TOPICS, members=members)

    def grown(kafka: Kafka, divisor: int) -> Shape:
        return one_more(kafka, shape(kafka, divisor))

    incremental = name.endswith("INCREMENTAL")
    return Case(
        name=name,
        ours=kafkas,
        kafkas=kafkas,
        shape=grown if incremental else shape,
        divisors=divisors,
    )


GRID = tuple(
    _grid_case(f"{words}, {assignor.upper()}, {kind}", assignor, make, divisors)
    # Kafka takes minutes for the larger ones of unequal subscriptions.
    for words, make, divisors in (
        ("HOMOGENEOUS", equal, (1, 2, 10, 20, 100)),
        ("HETEROGENEOUS", buckets, (10, 20, 100)),
    )
    for assignor in (RANGE, COOPERATIVE)
    for kind in ("FULL", "INCREMENTAL")
)
"""Kafka's ClientSideAssignorBenchmark at 10 partitions per member and 100 topics: over all its member counts where
subscriptions are equal, up to 1,000 members where they are not. Its other ratios (5, 50) and topic counts (10, 1,000) are
left out. Racks, too: with a replica of every partition in each of the three they choose nothing."""
