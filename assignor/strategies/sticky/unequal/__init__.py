"""The most even assignment for members with different subscriptions, by augmenting paths and min-cost flow.

Imports `model`. Start with `solver`: `blocks` finds how many partitions each member has, `moves` the assignment with
these counts and the fewest moves, and `flow` the paths that both augment along.

Example: topic t has 2 partitions and is read by a and b, topic u has 1 and is read by b and c. a owns t-0 and t-1, b
owns u-0, c joins. The most even counts are 1, 1, 1. No partition of a's can go to c directly; the augmenting path a,
t, b, u, c moves one partition of t from a to b and u-0 from b to c, and two moves are the fewest.

    >>> from assignor.model.members import Member, build_group
    >>> from assignor.model.topics import Topics
    >>> from assignor.strategies.sticky.unequal.solver import assign_unequal
    >>> members = (
    ...     Member(member_id="a", topics=("t",), owned={"t": (0, 1)}, generation=1),
    ...     Member(member_id="b", topics=("t", "u"), owned={"u": (0,)}, generation=1),
    ...     Member(member_id="c", topics=("u",)),
    ... )
    >>> assign_unequal(build_group(topics=Topics.of({"t": 2, "u": 1}), members=members)).member.tolist()
    [0, 1, 2]
"""
