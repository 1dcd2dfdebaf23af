"""The drain time that no assignment can beat, so that a plan can be judged without knowing the best one."""

import numpy as np

from assignor.arrays import Floats, Int64s
from assignor.drain import summed, times_s
from assignor.group import Group


def lower_bound_s(group: Group) -> float | None:
    """Seconds below which no assignment drains the group; `inf` when none ever does, None when unknown.

    A member with capacity mu is through with a set of partitions by time T only if L + A*T <= mu*T, L and A
    the sums of lag and rate over the set. Four consequences follow; the largest is returned.

    1. *One partition.* Partition p lies on one of its subscribers, the fastest of which drains mu_p:
       T >= L_p / (mu_p - a_p).
    2. *One subscriber set.* Partitions whose topics have the same subscribers lie on those members. Adding up
       L + A*T <= mu*T over the members: T >= L / (sum of mu - A).
    3. *k partitions.* Any k partitions lie on at most k members, whose capacities sum to at most M_k, those
       of the k fastest: T >= L / (M_k - A). Taken for the k largest lags, k = 1 .. n, n the members that can
       hold a partition, and for all partitions, with M_n.
    4. *Two on one.* Of the n + 1 largest lags two lie on one member. Their lags sum to at least the two
       smallest of those n + 1, their rates to at least the two smallest rates among them:
       T >= (L' + L'') / (M_1 - a' - a'').
    """
    if group.capacity is None:
        return None
    work = np.nonzero(group.readable())[0]
    if len(work) == 0:
        return 0.0
    fastest = -np.sort(-group.capacity[group.readers()])
    largest = _largest(group, work, n=len(fastest) + 1)
    return max(
        _one_partition(group, group.capacity, work),
        _one_subscriber_set(group, group.capacity, work),
        _k_partitions(group, fastest, largest),
        _all_partitions(group, fastest, work),
        _two_on_one(group, fastest, largest),
    )


def _largest(group: Group, work: Int64s, *, n: int) -> Int64s:
    """The n pids of largest lag, by (falling lag, pid); all of `work` if it is shorter."""
    lag = group.lag[work]
    first = max(len(work) - n, 0)
    candidates: Int64s = work[lag >= np.partition(lag, first)[first]]
    largest: Int64s = candidates[np.argsort(-group.lag[candidates], kind="stable")][:n]
    return largest


def _one_partition(group: Group, capacity: Floats, work: Int64s) -> float:
    sets = group.subscriptions
    fastest = np.zeros(sets.n_sets)
    np.maximum.at(fastest, np.repeat(np.arange(sets.n_sets), sets.set_sizes()), capacity[sets.members])
    spare = fastest[sets.set_of_topic[group.topics.topic_of[work]]] - group.rate[work]
    return float(times_s(group.lag[work].astype(np.float64), spare).max())


def _one_subscriber_set(group: Group, capacity: Floats, work: Int64s) -> float:
    sets = group.subscriptions
    of_set = sets.set_of_topic[group.topics.topic_of[work]]
    lag = summed(group.lag[work], by=of_set, n=sets.n_sets)
    rate = summed(group.rate[work], by=of_set, n=sets.n_sets)
    set_of_entry = np.repeat(np.arange(sets.n_sets, dtype=np.int32), sets.set_sizes())
    total = summed(capacity[sets.members], by=set_of_entry, n=sets.n_sets)
    return float(times_s(lag, total - rate).max())


def _k_partitions(group: Group, fastest: Floats, largest: Int64s) -> float:
    k = min(len(fastest), len(largest))
    lag = np.cumsum(group.lag[largest[:k]], dtype=np.float64)
    spare = np.cumsum(fastest[:k]) - np.cumsum(group.rate[largest[:k]])
    return float(times_s(lag, spare).max())


def _all_partitions(group: Group, fastest: Floats, work: Int64s) -> float:
    lag = group.lag[work].sum(dtype=np.float64)
    spare = fastest.sum() - group.rate[work].sum()
    return float(times_s(np.array([lag]), np.array([spare]))[0])


def _two_on_one(group: Group, fastest: Floats, largest: Int64s) -> float:
    if len(largest) <= len(fastest):
        return 0.0
    lag = group.lag[largest[-2:]].sum(dtype=np.float64)
    rate = np.sort(group.rate[largest])[:2].sum()
    return float(times_s(np.array([lag]), np.array([fastest[0] - rate]))[0])
