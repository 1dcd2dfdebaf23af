"""Source: the groups that a batch requests, and the shares of its tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from pipeline.name_filter import NameFilter
from pipeline.placement import placed

NOT_ASKED_IN_TIME = "the groups before it took all of source.request_timeout_s"
"""Why a group that was not requested has no answer."""
# For fewer groups a task is not worth its cost.
_SHARE_GROUPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsSettings:
    """Settings of the requests."""

    properties: dict[str, Any]
    """librdkafka properties; references to secrets are still unresolved."""
    groups_include: tuple[str, ...]
    groups_exclude: tuple[str, ...]
    """Regular expressions on the whole group id; exclusion wins."""
    request_timeout_s: float
    """Time for all groups of a task together."""
    at_once: int
    """Maximum number of groups that all tasks together request at the same time."""

    @property
    def wanted(self) -> NameFilter:
        """Admits the groups to request."""
        return NameFilter(self.groups_include, self.groups_exclude)


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as the brokers list it."""

    group_id: str
    group_type: str
    """'classic', 'consumer', or 'unknown': the client knows no other type, and older brokers report none."""
    state: str | None
    """Kafka's name of the state; None if the client does not know it."""
    is_other: bool = False
    """Only the list of groups of all protocols has it: its members are not those of a group of consumers."""
    is_readable: bool = True
    """False if the list shows an assignment that Kafka's client cannot decode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The groups of the cluster."""

    groups: tuple[ListedGroup, ...] = ()
    error: str | None = None
    """Why there may be more groups; None if all brokers have answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShare:
    """Groups that one task requests, in this order."""

    groups: tuple[ListedGroup, ...]
    at_once: int
    """Maximum number that it requests at the same time."""


def shared_out(
    groups: Sequence[ListedGroup], *, tasks: int, at_once: int, doubtful: Mapping[str, str], tick: int
) -> list[GroupShare]:
    """The groups in at most `tasks` shares of about equal size.

    Groups for which the previous batch had no time come first. Requests wait for a silent coordinator, so groups that
    had no answer come last. Among equals the order is another one in each batch: with too many groups for a batch, each
    has its turn sooner or later.

    Args:
        groups: Groups to request.
        tasks: Number of tasks that run at once.
        at_once: Maximum number of groups that are requested at the same time.
        doubtful: Why a group had no answer in the previous batch, by group.
        tick: Tick of the batch.
    """
    if not groups:
        return []

    def turn(group: ListedGroup) -> tuple[int, int, str]:
        why = doubtful.get(group.group_id)
        drawn = crc32(f"{tick} {group.group_id}".encode())
        return (0 if why == NOT_ASKED_IN_TIME else 1 if why is None else 2), drawn, group.group_id

    count = max(1, min(tasks, at_once, -(-len(groups) // _SHARE_GROUPS)))
    shares = placed(sorted(groups, key=turn), lambda _group: 1, tasks=count)
    each = max(1, at_once // len(shares))
    return [GroupShare(groups=tuple(sorted(share, key=turn)), at_once=each) for share in shares]
