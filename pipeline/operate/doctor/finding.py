"""Finding: one answer of the doctor, with its cause, what to do about it, and how old its figures are."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Literal, TypeAlias

from pipeline.operate.output import plain

Level: TypeAlias = Literal["ok", "note", "problem", "unknown"]
"""Good; intended or worth knowing; needs action; could not be checked."""
Question: TypeAlias = Literal["groups", "tables", "kafka", "listed", "planned", "followed", "behind", "job"]
"""Subjects of findings, in display order."""

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Common fields of findings from the same figures."""

    question: Question
    source: str
    """Source of the figures: a table, `brokers`, or `configuration`."""
    as_of: datetime | None = None
    """Time of the figures; None for values without an age, such as a setting, and if unknown."""
    object: str | None = None
    """Object of the finding: a group, topic, partition, member or setting."""

    def finding(self, level: Level, cause: str, todo: str | None = None) -> "Finding":
        """Return a finding with these fields."""
        common = {one.name: getattr(self, one.name) for one in fields(Figures)}
        return Finding(**common, level=level, cause=cause, todo=todo)

    def of_configuration(self, name: str) -> "Figures":
        """Return the same fields with `configuration` as the source."""
        return replace(self, source="configuration", as_of=None, object=name)

    def about(self, name: str) -> "Figures":
        """Return the same figures about another object."""
        return replace(self, object=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Figures):
    """One answer. Cause and todo are one line each, without a period at their ends."""

    level: Level
    cause: str
    todo: str | None = None


def named(names: Sequence[str]) -> str:
    """The first few of these, and how many others there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def group_text(group_id: str) -> str:
    """Return a group's name for a sentence; put an invisible one in quotation marks."""
    text = plain(group_id)
    return text if text.strip() else f'"{text}"'
