"""`lag-sticky` as it is configured by default, beside the best assignment within the moves that it may make."""

import math

import numpy as np

from assignor.evaluation import validity
from assignor.model.group import Group
from tests.support.assignors.drain_groups import lag_sticky, time_s
from tests.support.assignors.drain_judge import soonest_s
from tests.support.assignors.groups import group as build
from tests.support.assignors.groups import member

_GROUPS = 400
_FLOOR_S = 20.0
_DAY_S = 86_400.0


def _drawn(seed: int) -> Group:
    """2 to 4 members of like or unlike speed, 2 to 12 partitions, 10 s to an hour behind, up to 97 % of use."""
    random = np.random.default_rng([seed, 7])
    n = int(random.integers(2, 5))
    p = int(random.integers(n, 10 if n > 3 else 13))
    unlike = random.random() < 0.5
    capacity = random.choice([1000.0, 1000.0, 3000.0, 6100.0], n) if unlike else np.full(n, 1000.0)
    use = random.uniform(0, 0.97)
    busy = random.pareto(1.3, p) + 0.05 if random.random() < 0.6 else random.uniform(0.5, 1.5, p)
    rate = np.minimum(use * capacity.sum() * busy / busy.sum(), 0.95 * capacity.max())
    behind_s = 10 ** random.uniform(1, 3.5)
    late = random.pareto(1.1, p) if random.random() < 0.6 else random.uniform(0, 1, p)
    lag = (late / late.sum() * capacity.sum() * (1 - use) * behind_s).astype(int)
    owner = random.integers(0, n, p) if random.random() < 0.5 else random.permutation(np.arange(p) % n)
    # The first third of the partitions is a topic that not everybody reads.
    n_some = max(1, p // 3) if random.random() < 0.3 else 0
    reads_some = [m == 0 or random.random() < 0.5 for m in range(n)]
    some, all_ = np.arange(n_some), np.arange(n_some, p)
    owner[:n_some][~np.array(reads_some)[owner[:n_some]]] = 0
    topics = {"t": all_} | ({"some": some} if n_some else {})
    members = [
        member(
            f"m{m}",
            *(name for name in topics if name == "t" or reads_some[m]),
            owned={name: np.flatnonzero(owner[pids] == m).tolist() for name, pids in topics.items()},
            capacity=float(capacity[m]),
        )
        for m in range(n)
    ]
    return build(
        {name: len(pids) for name, pids in topics.items()},
        *members,
        lags={name: lag[pids].tolist() for name, pids in topics.items()},
        rates={name: rate[pids].tolist() for name, pids in topics.items()},
    )


def test_by_default_a_small_group_is_drained_about_as_soon_as_so_many_moves_can() -> None:
    """Below 20 s nobody is late, and beyond a day nobody knows the rates: such times are the same."""
    ratios = []
    for seed in range(_GROUPS):
        group = _drawn(seed)
        best_s = soonest_s(group, max_moves=max(2, math.ceil(group.n_partitions / 10)))
        if not math.isfinite(best_s):
            continue

        target = lag_sticky(group)

        validity.check(group, target)
        found_s, least_s = (min(max(time, _FLOOR_S), _DAY_S) for time in (time_s(group, target), best_s))
        ratios.append(found_s / least_s)
    assert len(ratios) > _GROUPS / 2
    assert min(ratios) >= 1 - 1e-9
    assert np.quantile(ratios, 0.95) <= 1.10
    assert max(ratios) <= 2.5
