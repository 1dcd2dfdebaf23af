"""Decode: whose records are taken."""

import hashlib
from dataclasses import dataclass

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
    commands: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Whose commits are kept: regular expressions on the whole name; exclusion wins."""

    topics_include: tuple[str, ...]
    topics_exclude: tuple[str, ...]
    groups_include: tuple[str, ...]
    groups_exclude: tuple[str, ...]
    control_topics: ControlTopics

    @property
    def identity(self) -> str:
        """The same for the same filters: rows that were taken under others are not what these would have taken."""
        control = self.control_topics
        text = _IDENTITY_FORM.format(
            self.topics_include,
            self.topics_exclude,
            self.groups_include,
            self.groups_exclude,
            *(control.cluster, control.acks, control.commands),
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]
