"""The sticky family: the most even counts possible, and among them the fewest moves.

Imports `model`. Start with `strategy`; `equal` is for equal subscriptions, `unequal` for all others; `constrained` and
`cooperative` give the same targets under other rebalance protocols.

Example: a owns partitions 0 to 4 of one topic, b owns 5 and 6, and c joins. 7 = 3 * 2 + 1, so a keeps three, b its two,
and 3 and 4 go to c.

    >>> from assignor.model.members import Member, build_group
    >>> from assignor.model.topics import Topics
    >>> from assignor.strategies.sticky.strategy import assign
    >>> owned = {"a": {"t": (0, 1, 2, 3, 4)}, "b": {"t": (5, 6)}, "c": {}}
    >>> members = [
    ...     Member(member_id=name, topics=("t",), owned=claims, generation=1) for name, claims in owned.items()
    ... ]
    >>> assign(build_group(topics=Topics.of({"t": 7}), members=members)).member.tolist()
    [0, 0, 0, 2, 2, 1, 1]
"""
