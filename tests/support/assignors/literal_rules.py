"""The rules of the strategies one partition at a time, as their texts state them: slow, plain, the oracles."""

from collections.abc import Sequence

from assignor.model.group import Group


def subscribers(group: Group, topic: int) -> list[int]:
    return [int(m) for m in group.subscriptions.of_topic(topic)]


def possible_members(group: Group, partition: int) -> list[int]:
    """Its owner, if it has to stay there; otherwise all subscribers that follow plans."""
    if stays(group, partition):
        return [int(group.owner[partition])]
    readers = subscribers(group, int(group.topics.topic_of[partition]))
    return [m for m in readers if group.closed is None or not group.closed[m]]


def stays(group: Group, partition: int) -> bool:
    """Whether the partition has to be where it is."""
    owner = int(group.owner[partition])
    is_closed = owner >= 0 and group.closed is not None and bool(group.closed[owner])
    return owner >= 0 and (is_closed or (group.fixed is not None and bool(group.fixed[partition])))


def partitions_of(group: Group, topic: int) -> range:
    return range(int(group.topics.offsets[topic]), int(group.topics.offsets[topic + 1]))


def resolve(claims: Sequence[tuple[int, int, int]], n_partitions: int) -> tuple[list[int], list[bool]]:
    """KIP-341 for (partition, member, generation): holder and contested of each partition."""
    holder, contested = [], []
    for partition in range(n_partitions):
        mine = [(generation, member) for p, member, generation in claims if p == partition]
        newest = {member for generation, member in mine if generation == max(mine)[0]}
        holder.append(newest.pop() if len(newest) == 1 else -1)
        contested.append(len(newest) > 1)
    return holder, contested


def lag_aware(group: Group, scope: str, ties: str = "lag") -> list[int]:
    """KIP-169, a partition at a time: fewest partitions of the topic, then least lag, then member order.

    With ties "kip" least lag counts only where all of them have as many.
    """
    lag = group.lag.tolist()
    topics = list(range(group.topics.n_topics))
    if scope == "group":
        topics.sort(key=lambda t: (-sum(lag[p] for p in partitions_of(group, t)), t))
    fixed = [partition for partition in range(group.n_partitions) if stays(group, partition)]
    member = [
        int(group.owner[partition]) if partition in fixed else -1 for partition in range(group.n_partitions)
    ]
    total = dict.fromkeys(range(group.n_members), 0)
    for pid in fixed:
        total[member[pid]] += lag[pid]
    for t in topics:
        count = dict.fromkeys(range(group.n_members), 0)
        if scope == "topic":
            total = dict.fromkeys(range(group.n_members), 0)
        for partition in partitions_of(group, t):
            if partition in fixed:
                count[member[partition]] += 1
                total[member[partition]] += lag[partition] if scope == "topic" else 0
        for partition in sorted(partitions_of(group, t), key=lambda partition: (-lag[partition], partition)):
            possible = possible_members(group, partition)
            if partition in fixed or not possible:
                continue
            are_equal = len({count[m] for m in possible}) == 1
            by_lag = ties == "lag" or are_equal
            chosen = min(possible, key=lambda m: (count[m], total[m] if by_lag else 0, m))
            member[partition] = chosen
            count[chosen] += 1
            total[chosen] += lag[partition]
    return member


def owned_by_kip_615(group: Group, partition: int, old_claims: str) -> int:
    """Owner of the partition, nobody where its claim is of an older generation and those are dropped."""
    is_old = int(group.ownership.generation[partition]) < group.newest_generation
    return -1 if is_old and old_claims == "drop" else int(group.owner[partition])


def constrained_sticky(group: Group, old_claims: str) -> list[int]:
    """KIP-615 with the quotas fixed first, a member and a partition at a time."""
    order = sorted(
        (
            partition
            for t in range(group.topics.n_topics)
            if subscribers(group, t)
            for partition in partitions_of(group, t)
        ),
        key=lambda partition: (group.topics.number_of[partition], group.topics.topic_of[partition]),
    )
    owned: dict[int, list[int]] = {m: [] for m in range(group.n_members)}
    for partition in order:
        owner = owned_by_kip_615(group, partition, old_claims)
        if owner >= 0:
            owned[owner].append(partition)
    floor, extras = divmod(len(order), max(group.n_members, 1))
    above = [m for m in owned if len(owned[m]) > floor]
    others = [m for m in owned if len(owned[m]) <= floor]
    large = set((above + others)[:extras])
    member = [-1] * group.n_partitions
    for m, partitions in owned.items():
        for partition in partitions[: floor + (m in large)]:
            member[partition] = m
    free = [partition for partition in order if member[partition] < 0]
    for limit in (floor, floor + 1):
        for m in owned:
            while free and member.count(m) < limit and (limit == floor or m in large):
                member[free.pop(0)] = m
    return member


def most_kept_with_even_counts(group: Group) -> int:
    """The optimum of the stickiness that counts within one allow, by the formula."""
    owned = [int((group.owner == m).sum()) for m in range(group.n_members)]
    floor, extras = divmod(int(group.readable().sum()), max(group.n_members, 1))
    return sum(min(o, floor) for o in owned) + min(extras, sum(o > floor for o in owned))


def stream_join_picks(n_numbers: int, n_members: int, owner: Sequence[int]) -> list[int]:
    """KIP-315, a pick at a time: own, else lowest unowned, else the last of the longest list that is left.

    In every round members with something of their own left pick first.
    """
    own = {m: [i for i in range(n_numbers) if owner[i] == m] for m in range(n_members)}
    free = [i for i in range(n_numbers) if owner[i] < 0]
    taker = [-1] * n_numbers
    while -1 in taker:
        for m in sorted(own, key=lambda m: (not own[m], m)):
            if -1 in taker:
                longest = max(own, key=lambda v: (len(own[v]), -v))
                pick = own[m].pop(0) if own[m] else free.pop(0) if free else own[longest].pop()
                taker[pick] = m
    return taker
