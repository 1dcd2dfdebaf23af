"""Reasons of decisions about KIP-848 groups (`group.protocol=consumer`), in the form that `reasons` describes."""

from collections.abc import Sequence

from pipeline import shell

ASSIGNOR = "lagwise"
"""Name of the broker's assignor that follows plans, for `group.remote.assignor`."""

ADVICE = (
    "the broker assigns the group's partitions (group.protocol=consumer, KIP-848), so the plan is advice and is not "
    'published; where the brokers run lagwise\'s assignor, set follow = "broker" for the group in [[plan.groups]]'
)
OTHER_TARGET = "the broker has made another target assignment for the group"
GROUP_UNKNOWN = (
    "the state of the group is unknown: some of its records are missing or unreadable; planning resumes when its "
    "coordinator has written them again"
)
SUBSCRIPTION_UNKNOWN = (
    "its subscription is unknown, as the broker has not resolved its regular expression yet"
)
PARTITIONS_UNKNOWN = "its partitions are unknown"
TARGET_UNKNOWN = "its target assignment is unknown"
NO_RECONCILIATION = "how far it has come to its target assignment is unknown"


def other_assignor(member_id: str, name: str) -> str:
    """The brokers' assignor that would apply the plan is not asked."""
    return (
        f"member {member_id} asks for the broker's assignor {name}, so the plan is advice; "
        f"set group.remote.assignor={ASSIGNOR} in the group's consumers, or leave it out if that is the brokers' "
        "first"
    )


def waiting(epoch: int, made: int, moves: int, *, is_taken: bool) -> str:
    """The broker has made the plan its target assignment, or has not begun."""
    if is_taken:
        return f"plan epoch {epoch} is under way: {made} of {moves} moves are made"
    return f"plan epoch {epoch} is still current, and the broker takes it when it assigns the group next"


def waiting_stuck(epoch: int, made: int, moves: int, member_id: str) -> str:
    """A member keeps the plan from its end."""
    return (
        f"plan epoch {epoch} is stuck: {made} of {moves} moves are made, and member {member_id} is behind its target "
        "assignment for longer than its rebalance timeout"
    )


def topics_unknown(topic_ids: Sequence[str]) -> str:
    """The group's records contain topic ids without a known name."""
    return f"topics with these ids are unknown: {', '.join(topic_ids)}"


def member_unknown(member_id: str, what: str) -> str:
    """Something of a member is not known."""
    return f"member {member_id}: {what}; planning resumes when that is known"


def member_classic(member_id: str) -> str:
    """The group is being migrated."""
    return (
        f"member {member_id} uses the classic protocol in a group that the broker assigns; "
        "planning resumes when all its members have group.protocol=consumer"
    )


def member_shared(member_id: str, group_id: str) -> str:
    """The broker's assignor, which knows groups by their members alone, would apply the plan of one to the other."""
    return (
        f"member {member_id} is also a member of group {group_id}, and the broker's assignor tells groups apart by the "
        "ids of their members, which clients choose; find out who uses that id, and restart the member under another"
    )


def member_stuck(member_id: str, group_id: str) -> str:
    """The member does not give up, or does not get, what the broker wants."""
    return (
        f"member {member_id} is stuck: it is behind its target assignment for longer than its rebalance timeout; "
        f"{shell.command('doctor', group_id)} names the partitions that it keeps or waits for"
    )


def unowned(partition: str, others: int) -> str:
    """The broker has not assigned a partition yet."""
    return (
        f"no member owns {_and_more(partition, others)}; planning resumes when the broker has assigned them"
    )


def owned_twice(partition: str, others: int) -> str:
    """Records of two members have the same partition."""
    return f"two members own {_and_more(partition, others)} by the group's records; planning resumes when one does"


def _and_more(first: str, others: int) -> str:
    return f"{first} and {others} other partition(s)" if others > 0 else first
