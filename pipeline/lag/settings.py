"""Lag: what the measures depend on in addition to the rows; the driver makes it, the kernels in tasks use it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """Inputs for measuring a partition's log, apart from its row."""

    at_ms: int
    """Clock of the batch."""
    batch_id: int
    listing_error: str | None
    """Why the brokers' list of topics is not complete."""
    half_life_ms: int
    remaining: Mapping[str, int] = field(default_factory=dict)
    """Number of partitions of each topic, as asked for by name. Unobserved partitions beyond it are gone."""
    unconfirmed: Mapping[str, str] = field(default_factory=dict)
    """By topic: why an unlisted topic is not known to be deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPace:
    """Interval of a partition's rows in the history."""

    interval_ms: int
    """At most, while it changes."""
    max_gap_ms: int
    """At least, while it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSettings:
    """Inputs for measuring a group's lag on a partition, apart from its row."""

    at_ms: int
    batch_id: int
    behind: tuple[int, ...]
    """Partitions of the offsets topic whose groups are provisional."""
    half_life_ms: int
    most_gap_ms: int
    """Samples of a log end that are further apart, and new, have a time between them in which nobody asked."""
    allowed_lag: int
    history: HistoryPace
    retention_ms: Mapping[str, int] = field(default_factory=dict)
    """Retention of each topic, if it is known and depends only on time."""
