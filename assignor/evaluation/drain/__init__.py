"""Drain times of an assignment, the lower bound for all assignments, costs, and explanations.

Imports `model` only. Strategies use it too: it only measures. Start with `time`, then `bound`, for
which `exact` tries out small groups; `report` puts the figures of a whole assignment together.

Example: three partitions of 30 records, two members of 10 records/s. With two partitions a needs 6 s, b 3 s. The best
partition takes 3 s, an even share 4.5 s; but two partitions lie on one member, so no assignment takes less than 6 s.

    >>> import numpy as np
    >>> from assignor.evaluation.drain.bound import group_bound
    >>> from assignor.evaluation.drain.time import drain_s
    >>> from assignor.model.members import Member, build_group
    >>> from assignor.model.topics import Topics
    >>> members = [Member(member_id=name, topics=("t",), capacity=10.0) for name in "ab"]
    >>> group = build_group(topics=Topics.of({"t": 3}), members=members, lag=np.array([30, 30, 30]))
    >>> drain_s(group, np.array([0, 0, 1], np.int32))
    6.0
    >>> bound = group_bound(group)
    >>> bound.cause.name, round(bound.time_s, 6)
    ('BIN_PACKING', 6.0)
"""
