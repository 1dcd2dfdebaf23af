"""Lag of a group over the last hour as a word-sized line, with gaps where the lag is unknown."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from pipeline.operate.output import NONE
from pipeline.operate.serve.views.history import Series
from pipeline.operate.serve.views.sparks import POINTS

_HEIGHT = 20
_Dot = tuple[int, int]


def spark(values: Series | None, now: int | None) -> Markup:
    """An SVG element of values a minute apart, which names the maximum, minimum and present lag; `-` for none."""
    known = [value for value in values or () if value is not None]
    if values is None or not known:
        return escape(NONE)
    top = max(*known, now or 0, 1)
    dots = [
        None if value is None else (at, _HEIGHT - 1 - round(value / top * (_HEIGHT - 2)))
        for at, value in enumerate((*values, now))
    ]
    words = f"lag of the last hour: {min(known):,} to {max(known):,}, now {'unknown' if now is None else f'{now:,}'}"
    line = "".join(map(_drawn, _runs(dots)))
    # Only numbers, so there is nothing to escape.
    return Markup(  # noqa: S704 - as above
        f'<svg class="spark" viewBox="0 0 {POINTS} {_HEIGHT}" role="img" aria-label="{words}"><path d="{line}"/></svg>'
    )


def _runs(dots: Sequence[_Dot | None]) -> Iterator[list[_Dot]]:
    """Runs of known values without a gap."""
    run: list[_Dot] = []
    for dot in (*dots, None):
        if dot is not None:
            run.append(dot)
        elif run:
            yield run
            run = []


def _drawn(run: Sequence[_Dot]) -> str:
    """Commands of an SVG path, without points inside a level line; a single point is drawn as a dot."""
    middle = [
        here
        for before, here, after in zip(run, run[1:], run[2:], strict=False)
        if not before[1] == here[1] == after[1]
    ]
    kept = [run[0], *middle, run[-1]] if len(run) > 1 else run
    return "M" + " ".join(f"{x},{y}" for x, y in kept) + ("h0" if len(run) == 1 else "")
