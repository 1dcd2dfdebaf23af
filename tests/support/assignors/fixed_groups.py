"""Groups of which something is fixed and some members are closed."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from assignor.model.group import Group
from tests.support.assignors.drain_groups import lagging_groups
from tests.support.assignors.groups import BLOBS, descriptions, group, member, picked

ValueT = TypeVar("ValueT")


@st.composite
def constrained(
    draw: st.DrawFn, of: st.SearchStrategy[ValueT], build: Callable[[ValueT], Group] = lambda built: built
) -> Group:
    """The groups of another strategy with any partitions fixed, also unowned ones, and any members closed."""
    built = build(draw(of))
    fixed = picked((False, True), draw(BLOBS), built.n_partitions)
    blob = draw(st.none() | BLOBS)
    closed = None if blob is None else picked((False, False, True), blob, built.n_members)
    return replace(
        built,
        fixed=np.array(fixed, np.bool_),
        closed=None if closed is None else np.array(closed, np.bool_),
    )


def constrained_descriptions(*, equal: bool | None = None) -> st.SearchStrategy[Group]:
    """Hostile groups, see `groups.descriptions`."""
    return constrained(descriptions(equal=equal), lambda description: description.build())


def constrained_lagging_groups(
    *, most_partitions: int = 9, most_members: int = 3
) -> st.SearchStrategy[Group]:
    """Groups that lag, see `drain_groups.lagging_groups`."""
    return constrained(lagging_groups(most_partitions=most_partitions, most_members=most_members))


def drawn_fixed(seed: int, *, fixed_share: float) -> Group:
    """Up to 6 partitions and 3 members, a share of the partitions fixed and now and then a member closed."""
    rng = np.random.default_rng(seed)
    n_members, n = int(rng.integers(2, 4)), int(rng.integers(3, 7))
    owner = rng.integers(0, n_members, n)
    lags = (rng.pareto(1.1, n) * 1000 + 1).astype(int) if rng.random() < 0.5 else rng.integers(1, 1000, n)
    rates = rng.random(n) * rng.choice((0.0, 10.0, 60.0))
    built = group(
        {"t": n},
        *(
            member(f"m{m}", "t", owned={"t": np.nonzero(owner == m)[0].tolist()}, capacity=float(c))
            for m, c in enumerate(rng.choice((50.0, 100.0, 200.0), n_members))
        ),
        lags={"t": lags.tolist()},
        rates={"t": rates.tolist()},
    )
    closed = rng.random(n_members) < (0.1 if fixed_share > 0 else 0.0)
    return replace(
        built,
        fixed=rng.random(n) < fixed_share if fixed_share > 0 else None,
        closed=closed if closed.any() else None,
    )
