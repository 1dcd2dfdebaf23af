"""Finding: one answer of the doctor, with its cause, what to do about it, and how old its figures are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from shlex import quote
from typing import Literal, TypeAlias

from pipeline.operate.output import plain

Level: TypeAlias = Literal["ok", "note", "problem", "unknown"]
"""Fine; held back on purpose, or worth knowing; to be acted on; could not be judged."""
Question: TypeAlias = Literal["groups", "tables", "kafka", "listed", "planned", "followed", "behind", "job"]
"""What a finding is about, in the order in which they are shown."""

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer. Cause and todo are one line each, without a period at their ends."""

    question: Question
    level: Level
    cause: str
    object: str | None = None
    """What it is about: a group, topic, partition, member or setting."""
    todo: str | None = None
    source: str
    """Where the figures come from: a table, `brokers`, or `configuration`."""
    as_of: datetime | None = None
    """When the figures were true; None for what has no age, such as a setting, and for what nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What findings have in common that are made of the same figures."""

    question: Question
    source: str
    as_of: datetime | None = None
    object: str | None = None

    def finding(self, level: Level, cause: str, todo: str | None = None) -> Finding:
        """A finding made of them."""
        return Finding(
            question=self.question,
            level=level,
            cause=cause,
            object=self.object,
            todo=todo,
            source=self.source,
            as_of=self.as_of,
        )

    def of_configuration(self, name: str) -> "Figures":
        """The same question, answered by a setting."""
        return replace(self, source="configuration", as_of=None, object=name)

    def about(self, name: str) -> "Figures":
        """The same figures about another object."""
        return replace(self, object=name)


def named(names: Sequence[str]) -> str:
    """The first few of these, and how many others there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def group_text(group_id: str) -> str:
    """A group's name in a sentence; one that nobody would see stands between quotation marks."""
    text = plain(group_id)
    return text if text.strip() else f'"{text}"'


def doctor_command(group_id: str) -> str:
    """What tells more about the group."""
    return f"`lagwise doctor {quote(plain(group_id))}`"
