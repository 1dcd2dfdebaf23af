"""Lag and age of a group over time, with its plans and changes: two pictures of the same moments."""

from collections.abc import Sequence
from datetime import timedelta

from markupsafe import Markup

from pipeline.operate.output import Row
from pipeline.operate.serve.page.plot import RECORDS, Unit, plot, unit_of_time, within
from pipeline.operate.serve.views.group import GroupView
from pipeline.operate.serve.views.history import Point, changes
from pipeline.operate.serve.views.source import Now, Source

_SPANS = {
    timedelta(minutes=5): "5 minutes",
    timedelta(minutes=15): "15 minutes",
    timedelta(hours=1): "hour",
    timedelta(hours=3): "3 hours",
}
"""Time span of the charts, and its wording."""


def drawn(source: Source, now: Now, view: GroupView, decided: Sequence[Row]) -> Row:
    """`span`, `plot`, `age_plot` of the last hours up to the newest batch, and `no_plot`, where there is no picture.

    Raises:
        StoreError: The tables cannot be read.
    """
    group_id = view.row["group_id"]
    past = source.past(now, group_id, tuple(_SPANS))
    if past is None:
        words = "The group has too many partitions to draw its history."
        return {"span": next(iter(_SPANS.values())), "plot": None, "age_plot": None, "no_plot": words}
    lag, age = _ending(past.lag, view.row["lag"]), _ending(past.age, view.row["lag_seconds"])
    start = lag[0][0]
    span = _SPANS[now.end - start]
    plans = [
        (row["created_at"], f"plan epoch {row['epoch']} published")
        for row in decided
        if row["decision"] == "publish"
    ]
    marks = {
        "plan": within(plans, lag),
        "change": within(changes(now.found, group_id, start=start, end=now.end), lag),
    }

    def picture(points: Sequence[Point], words: str, unit: Unit) -> Markup | None:
        if sum(value is not None for _, value in points) <= 1:
            return None
        return plot(points, marks, label=f"{words} over the last {span}, times in UTC", unit=unit)

    return {
        "span": span,
        "plot": picture(lag, "Lag in records", RECORDS),
        "age_plot": picture(age, "Age of the oldest unread record", unit_of_time(age)),
        "no_plot": "No history yet.",
    }


def _ending(points: Sequence[Point], newest: float | None) -> list[Point]:
    """The points, with the value of the newest batch as the last one."""
    return [*points[:-1], (points[-1][0], newest)]
