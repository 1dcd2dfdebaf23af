"""Groups with unequal subscriptions in which even counts are hard to find: uneven topics, chains, lumps."""

import numpy as np
from hypothesis import strategies as st

from assignor.model.group import Group
from tests.support.assignors.groups import group, member

_MOST_PARTITIONS = (3, 6, 15, 60)
_DENSITIES = (0.15, 0.25, 0.4, 0.6)


@st.composite
def unequal_groups(draw: st.DrawFn) -> Group:
    """Up to 12 members and 12 topics; half of the topics with one owner, the others with any owners or none.

    Seeded numbers instead of one draw each: hundreds of owners would be slow to draw.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_topics, n_members = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    may_read = rng.random((n_topics, n_members)) < rng.choice(_DENSITIES)
    counts = rng.integers(0, rng.choice(_MOST_PARTITIONS), n_topics)
    owners = [rng.integers(-1, n_members, 1 if rng.random() < 0.5 else n) for n in counts]
    owned = [np.broadcast_to(owner, n) for owner, n in zip(owners, counts, strict=True)]
    return group(
        {f"t{t:02}": int(n) for t, n in enumerate(counts)},
        *(
            member(
                f"m{m:02}",
                *(f"t{t:02}" for t in np.nonzero(may_read[:, m])[0]),
                owned={f"t{t:02}": np.nonzero(owner == m)[0].tolist() for t, owner in enumerate(owned)},
            )
            for m in range(n_members)
        ),
    )
