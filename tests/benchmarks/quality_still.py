"""How long each strategy leaves a group to drain, over the bound that no assignment beats."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from assignor.evaluation.drain.bound import lower_bound_s
from assignor.evaluation.drain.time import drain_s
from assignor.evaluation.validity import check
from assignor.model.group import Group
from assignor.strategies.registry import STRATEGIES
from tests.benchmarks.quality_policies import FREE
from tests.benchmarks.timing import p
from tests.benchmarks.workloads_groups import KINDS, Kind, draw

_SAME = 1 + 1e-9
BEST = "lag-sticky K=P, lambda=0, floor=0"
_RIVALS = ("lag-aware", "lag-aware scope=group", "sticky", "cooperative-sticky")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A strategy with options, asked once."""

    name: str
    strategy: str
    options: Callable[[Group], Mapping[str, object]] = field(default=lambda _: {})


@dataclass(slots=True)
class Tally:
    """What one contender came to, an entry per group."""

    ratios: list[float] = field(default_factory=list)
    """Drain time over the bound, `inf` where it leaves a member that is never drained."""
    moves: list[int] = field(default_factory=list)
    r_scores: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, object]:
        """The tally in one row."""
        return {
            "drain_over_bound_median": shown(p(self.ratios, 50)),
            "drain_over_bound_p95": shown(p(self.ratios, 95)),
            "never_drained_percent": round(100 * sum(map(math.isinf, self.ratios)) / len(self.ratios), 1),
            "moves_median": p([float(n) for n in self.moves], 50),
            "r_score_median": round(p(self.r_scores, 50), 2),
        }


def contenders() -> list[Contender]:
    """Every strategy with its defaults, and lag-sticky with more and with less to spend."""
    variants = [
        *(Contender(name=name, strategy=name) for name in STRATEGIES),
        Contender(name="lag-aware scope=group", strategy="lag-aware", options=lambda _: {"scope": "group"}),
        Contender(
            name="lag-sticky K=P/20",
            strategy="lag-sticky",
            options=lambda group: {**FREE, "max_moves": -(-group.n_partitions // 20)},
        ),
        Contender(name=BEST, strategy="lag-sticky", options=lambda _: FREE),
    ]
    return [contender for contender in variants if contender.strategy in STRATEGIES]


def compare(*, groups: int) -> dict[str, dict[str, Tally]]:
    """A tally by kind of group and contender."""
    return {kind.name: _compare(kind, groups) for kind in KINDS}


def pooled(by_kind: Mapping[str, Mapping[str, Tally]]) -> dict[str, Tally]:
    """The tallies of all kinds as one."""
    total: dict[str, Tally] = {}
    for tallies in by_kind.values():
        for name, tally in tallies.items():
            into = total.setdefault(name, Tally())
            into.ratios += tally.ratios
            into.moves += tally.moves
            into.r_scores += tally.r_scores
    return total


def worse_than_rivals(total: Mapping[str, Tally]) -> dict[str, int]:
    """Groups that each rival drains sooner than the best of lag-sticky."""
    if BEST not in total:
        return {}
    return {
        rival: sum(
            ours > theirs * _SAME
            for ours, theirs in zip(total[BEST].ratios, total[rival].ratios, strict=True)
        )
        for rival in _RIVALS
    }


def shown(value: float) -> float | str:
    """JSON has no infinity."""
    return "never" if math.isinf(value) else round(value, 3)


def _compare(kind: Kind, groups: int) -> dict[str, Tally]:
    tallies = {contender.name: Tally() for contender in contenders()}
    for seed in range(groups):
        group = draw(kind, seed)
        bound = lower_bound_s(group)
        assert bound is not None
        for contender in contenders():
            _ask(contender, group, bound, tallies[contender.name])
    return tallies


def _ask(contender: Contender, group: Group, bound: float, tally: Tally) -> None:
    assignment = STRATEGIES[contender.strategy].assign(group, contender.options(group))
    moves = check(group, assignment).moves
    drained = drain_s(group, assignment.member)
    assert drained is not None
    assert group.capacity is not None
    moved = assignment.member != group.owner
    tally.ratios.append(drained / bound)
    tally.moves.append(moves)
    tally.r_scores.append(float(group.rate[moved].sum()) / float(group.capacity.mean()))
