"""A figure of a group over time, as an SVG element that takes its colours from the page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from markupsafe import Markup

from pipeline.operate.serve.views.history import Mark, Point

_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 12, 14, 26
_LINES, _TIMES = 4, 6
_SHORT = timedelta(minutes=10)
"""On shorter axes, some times would be the same to the minute."""
_NICE = (1, 2, 2.5, 5, 10)


class Unit(NamedTuple):
    """Unit of the grid lines."""

    words: str
    size: float


RECORDS = Unit("", 1.0)
_TIMES_OF_S = (Unit(" h", 3_600.0), Unit(" min", 60.0), Unit(" s", 1.0))


@dataclass(frozen=True, slots=True)
class _Scale:
    start: datetime
    end: datetime
    top: float
    unit: Unit

    def x(self, at: datetime) -> float:
        share = (at - self.start) / (self.end - self.start)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        return round(_HEIGHT - _BOTTOM - value / self.top * (_HEIGHT - _TOP - _BOTTOM), 1)


def plot(
    points: Sequence[Point], marks: Mapping[str, Sequence[Mark]], *, label: str, unit: Unit = RECORDS
) -> Markup:
    """The picture of two points or more in the order of time, with gaps where values are unknown.

    `marks` are events between the first and the last point, by CSS class.
    """
    top = _nice(_largest(points) / unit.size) * unit.size
    scale = _Scale(points[0][0], points[-1][0], top, unit)
    parts = [
        *_grid(scale),
        *(_mark(scale, mark, kind) for kind, found in marks.items() for mark in found),
        *_curves(scale, points),
    ]
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>{}</svg>'
    ).format(_WIDTH, _HEIGHT, label, label, Markup().join(parts))


def unit_of_time(points: Sequence[Point]) -> Unit:
    """The one in which the largest of these seconds is two or more."""
    return next((one for one in _TIMES_OF_S if _largest(points) >= 2 * one.size), _TIMES_OF_S[-1])


def _largest(points: Sequence[Point]) -> float:
    return max((value for _, value in points if value is not None), default=0)


def _grid(scale: _Scale) -> list[Markup]:
    parts = []
    for step in range(_LINES + 1):
        value = scale.top * step / _LINES
        y = scale.y(value)
        parts += [
            Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                _LEFT, _WIDTH - _RIGHT, y, y
            ),
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(
                _LEFT - 8, y + 4, _words(value, scale.unit)
            ),
        ]
    clock = "%H:%M" if scale.end - scale.start > _SHORT else "%H:%M:%S"
    for step in range(_TIMES + 1):
        at = scale.start + (scale.end - scale.start) * step / _TIMES
        anchor = "end" if step == _TIMES else "middle"
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
                scale.x(at), _HEIGHT - 8, anchor, at.astimezone(timezone.utc).strftime(clock)
            )
        )
    return parts


def _words(value: float, unit: Unit) -> str:
    return f"{value / unit.size:,.2f}".rstrip("0").rstrip(".") + unit.words


def _curves(scale: _Scale, points: Sequence[Point]) -> list[Markup]:
    curves: list[list[str]] = [[]]
    for at, value in points:
        if value is None:
            curves.append([])
        else:
            curves[-1].append(f"{scale.x(at)},{scale.y(value)}")
    return [Markup('<polyline class="curve" points="{}"/>').format(" ".join(one)) for one in curves if one]


def _mark(scale: _Scale, mark: Mark, kind: str) -> Markup:
    at, what = mark
    x = scale.x(at)
    return Markup('<line class="mark {}" x1="{}" x2="{}" y1="{}" y2="{}"><title>{}</title></line>').format(
        kind, x, x, _TOP, _HEIGHT - _BOTTOM, f"{at.astimezone(timezone.utc):%H:%M:%S} {what}"
    )


def _nice(largest: float) -> float:
    """The smallest round number that is not below."""
    if largest <= _LINES:
        return float(_LINES)
    unit = 10.0 ** math.floor(math.log10(largest))
    return next(nice * unit for nice in _NICE if nice * unit >= largest)


def within(marks: Sequence[Mark], points: Sequence[Point]) -> list[Mark]:
    """Return the times between the first and the last point, to the second."""
    start, end = points[0][0], points[-1][0] + timedelta(seconds=1)
    return [mark for mark in marks if start <= mark[0] <= end]
