"""Results of each group, with and without following, as figures and as a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.operate.demo.report.timeline import GroupTimeline
from pipeline.operate.output import Column, aligned

HEADINGS = ("GROUP", "FOLLOWS", "LAG AT START", "LAG NOW", "MOST LAG", "DRAINED AFTER", "PARTITIONS MOVED")
_NAMES = 2
"""Number of text columns; columns of figures follow them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """One group; lag in records."""

    group_id: str
    follows: bool
    lag_at_start: int
    """When the stream first saw it."""
    lag_at_end: int
    most_lag: int
    was_behind: bool
    drained_s: float | None
    """Seconds until its backlog was drained (`timeline.ONE_POLL_S`); None if it was not, or is behind again."""
    moves: int
    """Partitions that plans have moved."""


def result_of(timeline: GroupTimeline) -> GroupResult:
    """The result of a group's timeline."""
    lags = [point.lag for point in timeline.points]
    return GroupResult(
        group_id=timeline.group_id,
        follows=timeline.follows,
        lag_at_start=lags[0],
        lag_at_end=lags[-1],
        most_lag=max(lags),
        was_behind=timeline.was_behind,
        drained_s=None if timeline.drained_s is None else round(timeline.drained_s, 1),
        moves=len(timeline.moves_at_s),
    )


def cells(result: GroupResult) -> tuple[str, ...]:
    """A line of the table, under `HEADINGS`."""
    return (
        result.group_id,
        "yes" if result.follows else "no",
        *(f"{lag:,}" for lag in (result.lag_at_start, result.lag_at_end, result.most_lag)),
        _drained(result),
        str(result.moves) if result.follows else "-",
    )


def _drained(result: GroupResult) -> str:
    if result.drained_s is not None:
        return f"{result.drained_s:.0f} s"
    return "not drained" if result.was_behind else "never behind"


def results_table(results: Sequence[GroupResult]) -> list[str]:
    """The table as lines of text."""
    columns = [Column(header=one, name=one, is_number=at >= _NAMES) for at, one in enumerate(HEADINGS)]
    return list(aligned(columns, list(map(cells, results))))
