"""The assignment of a small group with the least drain time, found by branch and bound.

Depth first: the heaviest partition first, and its members in the order of what they would then need. A branch ends
where it cannot beat the best assignment found:

- a member would be later than it, or hold more partitions than allowed;
- more partitions have moved than allowed, or their moves cost more than is gained;
- what is left to place is more than what the members can still take, not counting members without room for the
  lightest that is left (the waste of bin packing: Martello, Toth, Knapsack Problems (1990), chapter 8);
- of two members of one capacity, one set of readers and one load, or of two partitions of one lag and rate, the other
  order has been tried.

It counts its steps and stops at a limit, so it takes no longer on a slow machine, and its answer is always the same.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from assignor.evaluation.drain.cost import CostModel

# Sums of the same floats in another order differ in the last bits; neither side may win by them.
_CLEARLY_LESS = 1 - 1e-9
_ROUNDING = 1 + 1e-9
_ROUNDING_OF_SUMS = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedOnMembers:
    """Load that each of N members keeps, in addition to the partitions to place."""

    lag: list[float]
    rate: list[float]
    count: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallProblem:
    """Partitions to place on members; lists, since single elements of arrays are slow to read."""

    lag: list[float]
    """Records of each of P partitions."""
    rate: list[float]
    """Records per second that arrive in each."""
    may_read: list[list[int]]
    """Members that may have each, ascending."""
    owner: list[int]
    """The member from which taking it is a move; -1 for none."""
    capacity: list[float]
    """Records per second of each of N members."""
    most_held: int
    """Most partitions of a member."""
    move_cost_s: float = 0.0
    fixed: FixedOnMembers | None = None
    """What is fixed on the members; None for nothing."""
    model: CostModel | None = None
    """Loads as the search of a strategy has them; None for true drain times, `inf` where never."""

    def fixed_on_members(self) -> FixedOnMembers:
        """What each member keeps; new lists."""
        fixed, n = self.fixed, len(self.capacity)
        if fixed is None:
            return FixedOnMembers(lag=[0.0] * n, rate=[0.0] * n, count=[0] * n)
        return FixedOnMembers(lag=fixed.lag.copy(), rate=fixed.rate.copy(), count=fixed.count.copy())

    def load_s(self, member: int, lag: float, rate: float) -> float:
        """Load of a member with this work."""
        capacity = self.capacity[member]
        if self.model is not None:
            return self.model.load_of_one_s(lag, rate, capacity)
        if lag == 0 and rate <= capacity:
            return 0.0
        return lag / (capacity - rate) if rate < capacity else math.inf

    def least_load_s(self, member: int, lag: float, rate: float) -> float:
        """The same, but for what sums of another order could make of it."""
        return self.load_s(member, lag, rate * (1 - _ROUNDING_OF_SUMS))


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallAnswer:
    """Result of the search."""

    member: list[int] | None
    """Member of each partition; None if nothing is better than the known assignment."""
    cost_s: float
    """Load of the slowest member plus the cost of the moves; what was known, when nothing is better."""
    is_complete: bool
    """Was everything tried: then nothing costs less."""
    steps: int
    """Partitions placed on a member on the way."""


def soonest(
    problem: SmallProblem, *, known_s: float, most_moves: int, enough_s: float, most_steps: int
) -> SmallAnswer:
    """The assignment of least cost below `known_s`.

    Args:
        problem: What to place.
        known_s: Cost of an assignment that is known; `inf` for none.
        most_moves: Most partitions taken from their owners.
        enough_s: Sooner than this is not searched for.
        most_steps: Partitions placed on a member, at most; 10,000 take some 50 ms.
    """
    search = _Search(problem, known_s, most_moves, enough_s)
    search.run(most_steps)
    return SmallAnswer(
        member=search.best,
        cost_s=search.cost_s,
        is_complete=search.is_complete,
        steps=most_steps - search.steps_left,
    )


class _Search:
    def __init__(self, problem: SmallProblem, known_s: float, most_moves: int, enough_s: float) -> None:
        self._problem = problem
        self.best: list[int] | None = None
        self.cost_s = known_s
        self.steps_left = 0
        self._most_moves, self._enough_s = most_moves, enough_s
        fixed = problem.fixed_on_members()
        self._lag, self._rate, self._held = fixed.lag, fixed.rate, fixed.count
        self._member = [-1] * len(problem.lag)
        self._order = _heaviest_first(problem, known_s)
        self._kind = _kinds(problem)
        # Of partition order[d] and all after it: sums of lag and rate, and the least of each.
        self._left_lag, self._left_rate = _sums(problem.lag, self._order), _sums(problem.rate, self._order)
        self._least_lag = _least(problem.lag, self._order)
        self._least_rate = _least(problem.rate, self._order)
        self._like_before = [d > 0 and self._are_alike(d) for d in range(len(self._order))]

    @property
    def is_complete(self) -> bool:
        """Was everything tried that could be better."""
        return self.steps_left > 0 or self._is_enough()

    def run(self, most_steps: int) -> None:
        """Search."""
        self.steps_left = most_steps
        if not self._is_enough():
            self._place(0, 0, self._slowest_fixed_s())

    def _slowest_fixed_s(self) -> float:
        fixed = self._problem.fixed
        if fixed is None:
            return 0.0
        held = zip(range(len(fixed.lag)), fixed.lag, fixed.rate, strict=True)
        return max(self._problem.least_load_s(*of_member) for of_member in held)

    def _is_enough(self) -> bool:
        return self.cost_s <= self._enough_s * _ROUNDING

    def _are_alike(self, depth: int) -> bool:
        problem, (a, b) = self._problem, self._order[depth - 1 : depth + 1]
        return all(of[a] == of[b] for of in (problem.lag, problem.rate, problem.may_read, problem.owner))

    def _place(self, depth: int, moves: int, slowest_s: float) -> None:
        problem = self._problem
        if depth == len(self._order):
            self._take(moves)
            return
        p = self._order[depth]
        # The likeliest first: a good answer early cuts off most of what comes after.
        for load_s, member, more in self._choices(depth, p, moves):
            if self.steps_left <= 0 or self._is_enough():
                return
            self.steps_left -= 1
            limit_s = (self.cost_s - problem.move_cost_s * more) * _CLEARLY_LESS
            reached_s = max(load_s, slowest_s)
            if reached_s >= limit_s and not math.isinf(limit_s):
                # Loads only grow further down: the branch ends here.
                continue
            before = self._lag[member], self._rate[member]
            self._lag[member] += problem.lag[p]
            self._rate[member] += problem.rate[p]
            self._held[member] += 1
            self._member[p] = member
            if self._has_room(depth + 1, limit_s):
                self._place(depth + 1, more, reached_s)
            # Put back, not subtracted: a float that was added and taken away again need not be what it was.
            self._held[member] -= 1
            self._lag[member], self._rate[member] = before

    def _choices(self, depth: int, p: int, moves: int) -> list[tuple[float, int, int]]:
        """Load, member and moves for each member worth trying, the least load first."""
        problem, choices, seen = self._problem, [], set()
        # Of two partitions that are alike only one order is tried: the later one goes to no earlier member.
        first = self._member[self._order[depth - 1]] if self._like_before[depth] else 0
        for member in problem.may_read[p]:
            state = self._kind[member], self._lag[member], self._rate[member], self._held[member]
            more = moves + (problem.owner[p] >= 0 and problem.owner[p] != member)
            # Of members in one state the first stands for all.
            if member < first or state in seen or more > self._most_moves:
                continue
            seen.add(state)
            if self._held[member] >= problem.most_held:
                continue
            load_s = problem.least_load_s(
                member, self._lag[member] + problem.lag[p], self._rate[member] + problem.rate[p]
            )
            if not math.isinf(load_s):
                choices.append((load_s, member, more))
        choices.sort(key=lambda choice: (choice[0] + problem.move_cost_s * choice[2], choice[2], choice[1]))
        return choices

    def _has_room(self, depth: int, limit_s: float) -> bool:
        """Can the members take what is left by the limit, as far as sums tell."""
        if depth == len(self._order):
            return True
        # Work arrives until the horizon; where nothing is known to drain, only what arrives has to fit.
        lasts = math.isinf(limit_s)
        per_s = 1.0 if lasts else limit_s
        model = self._problem.model
        at_s = per_s if model is None else min(per_s, model.horizon_s)
        weighs_lag = 0.0 if lasts else 1.0
        least = weighs_lag * self._least_lag[depth] + self._least_rate[depth] * at_s
        room = 0.0
        for capacity, lag, rate in zip(self._problem.capacity, self._lag, self._rate, strict=True):
            residual = capacity * per_s * _ROUNDING - weighs_lag * lag - rate * at_s
            # Less than the lightest partition needs is waste, and bounds by it are tighter (Martello and Toth).
            if residual >= least:
                room += residual
        return room >= weighs_lag * self._left_lag[depth] + self._left_rate[depth] * at_s

    def _take(self, moves: int) -> None:
        """Keep the assignment if it is better, its sums added in the order in which `time.drain_s` adds them."""
        problem = self._problem
        fixed = problem.fixed_on_members()
        lag, rate = fixed.lag, fixed.rate
        for p, member in enumerate(self._member):
            lag[member] += problem.lag[p]
            rate[member] += problem.rate[p]
        slowest_s = max(problem.load_s(m, lag[m], rate[m]) for m in range(len(lag)))
        cost_s = slowest_s + problem.move_cost_s * moves
        if cost_s < self.cost_s:
            self.best, self.cost_s = self._member.copy(), cost_s


def _heaviest_first(problem: SmallProblem, known_s: float) -> list[int]:
    """Partitions without a choice, then by falling share of the work at about the best time."""
    at_s = known_s if math.isfinite(known_s) else 1e9
    if problem.model is not None:
        at_s = min(at_s, problem.model.horizon_s)

    def rank(p: int) -> tuple[bool, float, float, int]:
        weight = problem.lag[p] + problem.rate[p] * at_s
        return len(problem.may_read[p]) > 1, -weight, problem.rate[p], p

    return sorted(range(len(problem.lag)), key=rank)


def _kinds(problem: SmallProblem) -> list[tuple[float, int]]:
    """Equal for members that may stand for each other: one capacity, the same partitions, and no owners."""
    # Partitions as bits: equal readers are then equal numbers, whatever their count.
    masks = [0] * len(problem.capacity)
    for p, readers in enumerate(problem.may_read):
        for member in readers:
            masks[member] |= 1 << p
    owners = set(problem.owner)
    return [
        (capacity, masks[m] if m not in owners else -1 - m) for m, capacity in enumerate(problem.capacity)
    ]


def _sums(values: list[float], order: list[int]) -> list[float]:
    return _from_the_end(values, order, 0.0, lambda a, b: a + b)


def _least(values: list[float], order: list[int]) -> list[float]:
    return _from_the_end(values, order, math.inf, min)


def _from_the_end(
    values: list[float], order: list[int], empty: float, join: Callable[[float, float], float]
) -> list[float]:
    joined = [empty]
    for p in reversed(order):
        joined.append(join(joined[-1], values[p]))
    return joined[::-1]
