"""The options of `lag-sticky`."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from assignor.strategies.options import Choice, Number, Option

Counts: TypeAlias = Literal["free", "even"]
YesNo: TypeAlias = Literal["no", "yes"]

_DAY_S = 86_400
_MOST_PARTITIONS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Limits and move costs of a solution; `OPTIONS` has the defaults."""

    max_moves: int | None
    """Most partitions taken from an owner that may keep them; None is a tenth of all, and at least 2."""
    move_cost_s: float
    """Seconds sooner that the slowest member must be drained for each move, or the next slowest."""
    floor_s: float
    """Drain times up to this count as 0, while arrivals leave each member a tenth of its capacity."""
    min_gain: float
    """Share of the lag area that a solution must save, the cost of its moves deducted."""
    move_pause_s: float
    """Time for which no member reads a partition that moves."""
    group_pause_s: float
    """Time for which no member reads anything if anything moves: the pause of an eager rebalance."""
    count_cap: int | None
    """Most partitions of a member; None for no limit."""
    counts: Counts
    """"even": as even as the sticky strategies make them; lag only decides which partitions."""
    monotone: YesNo
    """"yes": with more moves allowed, the group is never drained later; takes several searches."""

    def budget(self, n_partitions: int) -> int:
        """Moves allowed in a group of `n_partitions`."""
        return max(2, -(-n_partitions // 10)) if self.max_moves is None else self.max_moves


OPTIONS: tuple[Option, ...] = (
    Number(name="max_moves", default=None, unit="partitions", high=_MOST_PARTITIONS, is_whole=True),
    Number(name="move_cost_s", default=1.0, unit="seconds", high=_DAY_S),
    Number(name="floor_s", default=20.0, unit="seconds", high=_DAY_S),
    Number(name="min_gain", default=0.05, unit="share of the lag area", high=1),
    Number(name="move_pause_s", default=6.0, unit="seconds", high=_DAY_S),
    Number(name="group_pause_s", default=0.0, unit="seconds", high=_DAY_S),
    Number(name="count_cap", default=None, unit="partitions", low=1, high=_MOST_PARTITIONS, is_whole=True),
    Choice(name="counts", words=("free", "even")),
    Choice(name="monotone", words=("no", "yes")),
)
"""Every option, by its field name in `Options`."""
