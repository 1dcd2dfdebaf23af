"""How far behind a group is, in seconds: what its oldest unread record has waited, and what catching up will take."""

import math

import numpy as np

from assignor.evaluation.drain.time import member_drain_s, sums_held
from assignor.model.group import Group
from pipeline.planning.facts import PartitionFacts
from pipeline.planning.problem.backlog import excused_s
from pipeline.planning.problem.load import BACKLOG_S


def behind_s(group: Group, partitions: PartitionFacts) -> float:
    """Seconds that the latest partition is behind, or that its slowest member will be; nan if unknown.

    A partition is behind by the age that its next record had when a commit was due, or else by its backlog in seconds
    of arrivals: records that wait for the next commit are not behind. A member with a backlog stays behind until it has
    drained it; `inf` if it loses ground. It will be as far behind as that if nothing is done, so there is no reason to
    wait until its records are as old.

    Args:
        group: With capacities, if they are known.
        partitions: The same partitions.
    """
    age_s = np.maximum(partitions.lag_age_s - excused_s(partitions), 0.0)
    arrivals_s = np.divide(group.lag, group.rate, out=np.full(len(age_s), math.nan), where=group.rate > 0)
    known = np.where(np.isnan(age_s), arrivals_s, age_s)
    known = np.append(known[~np.isnan(known)], _catching_up_s(group))
    return float(known.max()) if len(known) else math.nan


def _catching_up_s(group: Group) -> list[float]:
    """Seconds that the slowest member with a backlog needs to drain it; empty when there is none."""
    times_s = member_drain_s(group, group.owner)
    if times_s is None or group.capacity is None:
        return []
    lag = sums_held(group.lag, group.owner, group.n_members)
    late: list[float] = times_s[lag > BACKLOG_S * group.capacity].tolist()
    return [max(late)] if late else []
