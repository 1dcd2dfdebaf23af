"""How a member spreads its work over its partitions: max-min fair, as a consumer that fetches them in turn."""

import numpy as np

from assignor.model.arrays import Floats, Int32s

_MOST_ROUNDS = 8


def served(waiting: Floats, member: Int32s, budget: Floats) -> Floats:
    """Work done on each partition in a step.

    A partition that asks for less than an even share gets all it asks for; what it leaves is shared by the others.
    No member does more than its budget, and after the last round none is idle while it has more than a little to do.

    Args:
        waiting: Work that lies ready, 0 where nobody reads.
        member: Member of each partition, >= 0; it only counts where work lies ready.
        budget: Work that each member can do in the step.
    """
    n = len(budget)
    asked = np.bincount(member, weights=waiting, minlength=n)
    if (asked <= budget).all():
        return waiting
    done, left = waiting.copy(), budget.astype(np.float64)
    is_over = asked > budget
    unmet = is_over[member] & (waiting > 0)
    for last in range(_MOST_ROUNDS, 0, -1):
        level = (left / np.maximum(np.bincount(member[unmet], minlength=n), 1))[member]
        meets = unmet & (waiting <= level)
        if last == 1 or not meets.any():
            break
        left -= np.bincount(member[meets], weights=waiting[meets], minlength=n)
        unmet &= ~meets
    done[unmet] = np.minimum(waiting, level)[unmet]
    return done
