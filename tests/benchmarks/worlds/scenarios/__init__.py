"""The worlds: each a rule with a seed; none holds recorded data.

Unless a world says otherwise, a member does 1,000 units of work per second, arrivals are steady with noise of a tenth per
frame, everybody commits every 5 s, follows and hears of a plan 8 to 16 s after the evaluation, and a partition that moves
is unread for 3 to 6 s.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tests.benchmarks.worlds.scenario import Scenario
from tests.benchmarks.worlds.scenarios import costs, pauses, rhythms, strangers, traffic, usual

Generator = Callable[[np.random.Generator], Scenario]

GENERATORS: Mapping[str, Generator] = {
    "slow member": usual.slow_member,
    "recovering member": usual.recovering_member,
    "unequal members": usual.unequal_members,
    "hopeless partition": usual.hopeless_partition,
    "a fifth pinned": usual.pinned_fifth,
    "low rate, hours behind": usual.low_rate,
    "drifting hot spot": usual.drifting_hot_spot,
    "a day": usual.day,
    "rolling restart": usual.rolling_restart,
    "some do not follow": usual.some_do_not_follow,
    "80 to 95 % use": usual.busy,
    "nothing wrong": usual.quiet,
    "topics of unlike cost": usual.unlike_topics,
    **{f"slow member, commits {how}": partial(rhythms.slow_member, commits=how) for how in rhythms.RHYTHMS},
    **{f"nothing wrong, commits {how}": partial(rhythms.quiet, commits=how) for how in rhythms.RHYTHMS},
    "pauses, hung": partial(pauses.changing_members, hung=True),
    "pauses, polling": partial(pauses.changing_members, hung=False),
    "one pause of 10 minutes": pauses.once,
    "slow partition": costs.slow_partition,
    "slow partition and slow member": costs.slow_partition_and_member,
    "slow topic": costs.slow_topic,
    "hopeless beside curable": traffic.hopeless_beside_curable,
    "bursts": traffic.bursts,
    "unequal, 88 %": traffic.unequal_and_busy,
    "nothing wrong, noisy": traffic.noisy,
    "shared database": strangers.shared_database,
    "hot key and cold caches": strangers.hot_key_and_cold_caches,
    "transactions of minutes": strangers.transactions_of_minutes,
    "autoscaled by lag": strangers.autoscaled_by_lag,
    "idle but for one": traffic.idle_but_for_one,
}
"""By name. The place of a world is part of its seeds: new ones go to the end."""


def drawn(name: str, seed: int) -> Scenario:
    """One of the world's scenarios."""
    return GENERATORS[name](np.random.default_rng([list(GENERATORS).index(name), seed]))
