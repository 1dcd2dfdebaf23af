"""Why no plan is made for a group: everything that has to be known and true first."""

from assignor.errors import AbstainError
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import GroupFacts, PartitionFacts, Rules

# A member on Kafka Streams' own assignor is given tasks, which its partitions only follow.
_STREAMS_ASSIGNOR = "stream"


def refuse_group(facts: GroupFacts, rules: Rules) -> None:
    """Return if the group is one that can be planned.

    Raises:
        AbstainError: It is not; the message says why.
    """
    reasons = (
        (rules.exclude, "excluded by [[plan.groups]]"),
        (facts.provisional is not None, f"provisional: {facts.provisional}"),
        (
            facts.group_type is None,
            "no members: its consumers use assign() or are gone, nobody follows a plan",
        ),
        (
            facts.group_type == "consumer",
            "group.protocol=consumer (KIP-848): the broker assigns, no client can",
        ),
        (facts.group_type in {"share", "streams"}, f"a {facts.group_type} group is assigned by the broker"),
        (not facts.members, "no members"),
        (
            facts.protocol_type != "consumer",
            f"protocol type {facts.protocol_type!r} is not that of consumers",
        ),
        (facts.assignor == _STREAMS_ASSIGNOR, "Kafka Streams assigns tasks, not partitions"),
        (facts.state != "Stable" or facts.generation is None, f"not stable: {facts.state}"),
    )
    for is_so, reason in reasons:
        if is_so:
            raise AbstainError(reason)
    if (paused := pause_in_words(facts)) is not None:
        raise AbstainError(paused)
    for member in facts.members:
        if member.error is not None:
            raise AbstainError(
                f"the subscription of member {member.member_id} cannot be read: {member.error}"
            )


def pause_in_words(facts: GroupFacts) -> str | None:
    """Who has paused the group, and why; None when nobody has."""
    orders = facts.orders
    if orders is None or not orders.paused:
        return None
    said = f": {orders.pause_reason}" if orders.pause_reason else ""
    return f"paused by {orders.by}{said}; `lagwise resume {facts.group_id}` lets plans be made again"


def refuse_data(facts: GroupFacts, partitions: PartitionFacts, rules: Rules, *, now_ms: int) -> None:
    """Return if the offsets of every partition are known and fresh.

    Raises:
        AbstainError: They are not; the message names a partition and what is wrong with it.
    """
    known = set(partitions.topic)
    for member in facts.members:
        for topic in sorted(member.assigned):
            if member.assigned[topic] and topic not in known:
                raise AbstainError(
                    f"log offsets of topic {topic} are not known: deleted, excluded by source.topics_exclude, "
                    "or not shown to lagwise (it takes Describe on the topic)"
                )
    if not len(partitions.topic):
        raise AbstainError("no partitions: none of the subscribed topics exists")
    _refuse_unanswered(partitions)
    for broken, reason in (
        (partitions.log_end == UNKNOWN, "log end offset is not known"),
        (
            partitions.observed_at_ms < now_ms - rules.max_staleness_ms,
            f"log offsets are older than plan.max_staleness_s ({rules.max_staleness_ms // 1000} s)",
        ),
        (
            partitions.incomparable,
            "lag is not known until the group commits again: the commit is of another topic of that name, deleted",
        ),
    ):
        if broken.any():
            first = int(broken.argmax())
            name = f"{partitions.topic[first]}-{int(partitions.partition[first])}"
            raise AbstainError(f"{reason}: {name} and {int(broken.sum()) - 1} more")


def _refuse_unanswered(partitions: PartitionFacts) -> None:
    places = [index for index, why in enumerate(partitions.unanswered) if why]
    if places:
        first = places[0]
        raise AbstainError(
            f"log offsets were not answered for {partitions.topic[first]}-{int(partitions.partition[first])}"
            f"{f' and {len(places) - 1} more' if len(places) > 1 else ''}: {partitions.unanswered[first]}"
        )
