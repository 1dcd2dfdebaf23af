"""The soonest assignment that annealing finds: the judge of `lag-sticky` where groups are too large to try everything."""

import math

import numpy as np

from assignor.model.group import Group

_STEPS_PER_PARTITION = 400
_RESTARTS = 4
_COLDEST = 1e-4
"""Share of the slowest member's time; the hottest is a thousand times as much."""
_SOONER = 1 - 1e-9
"""What is less is rounding that the steps left behind."""


def annealed_s(group: Group, *, seed: int) -> float:
    """Drain time of the best assignment of a group that everybody may read wholly; `inf` if it found none.

    Every restart begins with the longest partition first and then cools down: half of the steps move a partition off
    the slowest member or off any, the others swap two. Overloaded members are compared by what they lack.
    """
    return min(
        _Annealing(group, np.random.default_rng([seed, restart])).best_s for restart in range(_RESTARTS)
    )


class _Annealing:
    def __init__(self, group: Group, random: np.random.Generator) -> None:
        assert group.capacity is not None
        self._lag = [float(records) for records in group.lag.tolist()]
        self._rate = group.rate.tolist()
        self._capacity = group.capacity.tolist()
        self._load = [[0.0, 0.0] for _ in self._capacity]
        self._member = [0] * len(self._lag)
        self._place_longest_first(random)
        self.best_s = math.inf
        self._cool_down(random)

    def _place_longest_first(self, random: np.random.Generator) -> None:
        at_s = 10.0 ** random.uniform(0, 4)
        for p in sorted(range(len(self._lag)), key=lambda p: -(self._lag[p] + self._rate[p] * at_s)):
            self._member[p] = min(range(len(self._load)), key=lambda m: self._energy_with(m, p))
            load = self._load[self._member[p]]
            load[0] += self._lag[p]
            load[1] += self._rate[p]

    def _energy_with(self, m: int, p: int) -> float:
        return self._energy(m, self._load[m][0] + self._lag[p], self._load[m][1] + self._rate[p])

    def _energy(self, m: int, lag: float, rate: float) -> float:
        """Seconds, and for a member that never drains more seconds than any other needs."""
        spare = self._capacity[m] - rate
        return lag / spare if spare > 1e-9 else 1e9 * (1 - spare / self._capacity[m])

    def _cool_down(self, random: np.random.Generator) -> None:
        n, members = len(self._lag), len(self._load)
        energies = [self._energy(m, *self._load[m]) for m in range(members)]
        steps = n * _STEPS_PER_PARTITION
        draws = random.random((steps, 4)).tolist()
        now = max(energies)
        for step, (kind, first, second, chance) in enumerate(draws):
            p, other = int(first * n), int(second * n)
            a = self._member[p]
            b = self._member[other] if kind < 0.5 else int(second * members)
            if a == b:
                continue
            self._exchange(p, a, b, other if kind < 0.5 else -1)
            new_a, new_b = self._energy(a, *self._load[a]), self._energy(b, *self._load[b])
            old_a, old_b = energies[a], energies[b]
            energies[a], energies[b] = new_a, new_b
            then = max(energies)
            heat = now * _COLDEST * 10 ** (3 * (1 - step / steps))
            # A little of the pair's own energies, so that steps beside the slowest member have a direction, too.
            rise = then - now + 0.05 * (max(new_a, new_b) - max(old_a, old_b))
            if rise <= 0 or chance < math.exp(-rise / max(heat, 1e-300)):
                now = then
                if now < self.best_s * _SOONER:
                    self.best_s = min(self.best_s, self._exact_s())
            else:
                self._exchange(p, b, a, other if kind < 0.5 else -1)
                energies[a], energies[b] = old_a, old_b

    def _exchange(self, p: int, a: int, b: int, other: int) -> None:
        """Partition `p` goes from `a` to `b`, and `other`, unless it is -1, the other way."""
        lag, rate = self._lag[p], self._rate[p]
        self._member[p] = b
        if other >= 0:
            lag, rate = lag - self._lag[other], rate - self._rate[other]
            self._member[other] = a
        from_a, to_b = self._load[a], self._load[b]
        from_a[0] -= lag
        from_a[1] -= rate
        to_b[0] += lag
        to_b[1] += rate

    def _exact_s(self) -> float:
        """The time, summed anew: steps leave rounding behind."""
        lag, rate = [0.0] * len(self._load), [0.0] * len(self._load)
        for p, m in enumerate(self._member):
            lag[m] += self._lag[p]
            rate[m] += self._rate[p]
        times = (
            held / (mu - arriving) if mu > arriving else (0.0 if mu == arriving and held == 0 else math.inf)
            for held, arriving, mu in zip(lag, rate, self._capacity, strict=True)
        )
        return max(times, default=0.0)
