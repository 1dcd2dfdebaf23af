"""Decode: whose records are taken."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

# The tables hold the hash of this text. In another form of it the same filters would count as others, and every
# driver that is upgraded would read all topics again from their start.
_IDENTITY_FORM = (
    "Filters(topics_include={!r}, topics_exclude={!r}, groups_include={!r}, groups_exclude={!r}, "
    "talk=TalkTopics(cluster={!r}, acks={!r}, commands={!r}))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTopics:
    """The topics of control messages, and the cluster that they have to be about."""

    cluster: str
    acks: str
    """The topic of groups that match no prefix."""
    commands: str
    acks_by_prefix: Mapping[str, str] = field(default_factory=dict)
    """Topic by prefix of the group name; the longest prefix wins."""

    @property
    def every_acks(self) -> frozenset[str]:
        """The topics of acknowledgements."""
        return frozenset({self.acks, *self.acks_by_prefix.values()})

    def acks_of(self, group_id: str) -> str:
        """The topic on which the group's acknowledgements count."""
        prefix = max((one for one in self.acks_by_prefix if group_id.startswith(one)), key=len, default=None)
        return self.acks if prefix is None else self.acks_by_prefix[prefix]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Groups and topics to keep: regular expressions on the whole name; exclusion wins."""

    topics_include: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    groups_include: tuple[str, ...]
    groups_exclude: tuple[str, ...]
    control_topics: ControlTopics
    asks_groups: bool = False
    """True if commits come from coordinators, not from the offsets topic; neither source can resume from the other."""

    @property
    def identity(self) -> str:
        """Identifies the filters. Rows read under other filters are not those that these would have admitted."""
        control = self.control_topics
        text = _IDENTITY_FORM.format(
            self.topics_include,
            self.topics_exclude,
            self.groups_include,
            self.groups_exclude,
            *(control.cluster, control.acks, control.commands),
        )
        if control.acks_by_prefix:
            text += f", acks_by_prefix={sorted(control.acks_by_prefix.items())!r}"
        if self.asks_groups:
            text += ", asks_groups=True"
        return hashlib.sha256(text.encode()).hexdigest()[:16]
