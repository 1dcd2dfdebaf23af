"""Source: which groups a batch asks for, and how its tasks share them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.name_filter import NameFilter
from pipeline.placement import placed

NOT_ASKED_IN_TIME = "the groups before it took all of source.request_timeout_s"
"""Why a group has no answer that nobody was asked for."""
# A task costs more than to ask for fewer.
_SHARE_GROUPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsSettings:
    """What to ask, and how."""

    properties: dict[str, Any]
    """librdkafka properties; references to secrets are still unresolved."""
    groups_include: tuple[str, ...]
    groups_exclude: tuple[str, ...]
    """Regular expressions on the whole group id; exclusion wins."""
    request_timeout_s: float
    """For all groups of a task together."""
    at_once: int
    """Most groups that are asked for at the same time, by all tasks together."""

    @property
    def wanted(self) -> NameFilter:
        """Lets the groups through that are asked for."""
        return NameFilter(self.groups_include, self.groups_exclude)


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as the brokers list it."""

    group_id: str
    group_type: str
    """'classic', 'consumer', or 'unknown': the client knows no other word, and older brokers give none."""
    state: str | None
    """Kafka's name of the state; None if the client does not know it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The groups of the cluster."""

    groups: tuple[ListedGroup, ...] = ()
    error: str | None = None
    """Why there may be more groups; None when all brokers have answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShare:
    """Groups that one task asks for, in this order."""

    groups: tuple[ListedGroup, ...]
    at_once: int
    """Most that it asks for at the same time."""


def shared_out(
    groups: Sequence[ListedGroup], *, tasks: int, at_once: int, doubtful: Mapping[str, str]
) -> list[GroupShare]:
    """The groups in at most `tasks` shares of about equal size.

    A silent coordinator holds up whoever waits for it. So groups that had no answer come last, and before those the
    ones that nobody asked for by then.

    Args:
        groups: To be asked for.
        tasks: How many run at once.
        at_once: Most groups that are asked for at the same time.
        doubtful: By group: why it had no answer in the batch before.
    """
    if not groups:
        return []

    def turn(group: ListedGroup) -> tuple[int, str]:
        why = doubtful.get(group.group_id)
        return (0 if why is None else 1 if why == NOT_ASKED_IN_TIME else 2), group.group_id

    count = max(1, min(tasks, at_once, -(-len(groups) // _SHARE_GROUPS)))
    shares = placed(sorted(groups, key=turn), lambda _group: 1, tasks=count)
    each = max(1, at_once // len(shares))
    return [GroupShare(groups=tuple(sorted(share, key=turn)), at_once=each) for share in shares]
