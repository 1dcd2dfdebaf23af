"""Strategy `range`, as in Kafka, with its rack pass.

Imports `model`. Start with `strategy`; `racks` prefers replicas near by.

Example: two topics of 5 partitions, read by a, b and c. 5 = 3 * 1 + 2, so a and b get two of each topic and c gets one.

    >>> from assignor.model.members import Member, build_group
    >>> from assignor.model.topics import Topics
    >>> from assignor.strategies.range.strategy import assign
    >>> members = [Member(member_id=name, topics=("t", "u")) for name in "abc"]
    >>> assign(build_group(topics=Topics.of({"t": 5, "u": 5}), members=members)).member.tolist()
    [0, 0, 1, 1, 2, 0, 0, 1, 1, 2]
"""
