"""The picture of the docs: how near to the bound at one moment, and lag against moves over time."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_NEVER = 100.0
"""Where a group that is never drained is drawn."""
_LEAST_MOVES = 1


def draw(figures: dict[str, Any], path: Path) -> None:
    """One SVG file, the same bytes for the same figures."""
    with mpl.rc_context({"svg.hashsalt": "quality", "font.size": 8, "svg.fonttype": "none"}):
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _still(left, figures["still"])
        _over_time(right, figures["over_time"])
        figure.savefig(path, format="svg", metadata={"Date": None})


def _still(axes: Axes, rows: dict[str, dict[str, Any]]) -> None:
    names = list(rows)[::-1]
    for place, name in enumerate(names):
        median = _place(rows[name]["drain_over_bound_median"])
        p95 = _place(rows[name]["drain_over_bound_p95"])
        axes.plot([median, p95], [place, place], color="C0", linewidth=1)
        axes.plot(median, place, "o", color="C0")
        axes.plot(p95, place, "|", color="C0", markersize=9)
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.set_xticks([1, 1.5, 2, 3, 5, 10, _NEVER], ["1", "1.5", "2", "3", "5", "10", "never"])
    axes.minorticks_off()
    axes.grid(axis="x", linewidth=0.3)
    axes.set_title("At one moment: drain time over the lower bound\n(dot: median, tick: p95)", loc="left")


def _over_time(axes: Axes, rows: dict[str, dict[str, Any]]) -> None:
    for mark, name in zip("os^vD<>Phd*Xp8", rows, strict=False):
        moves = max(rows[name]["moves"], _LEAST_MOVES)
        axes.plot(moves, rows[name]["lag_mega_record_s"], mark, label=name, linestyle="none")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("partitions moved")
    axes.set_ylabel("lag, mega record-seconds")
    axes.grid(linewidth=0.3)
    axes.legend(fontsize=6, loc="best")
    axes.set_title("Over time, all workloads: lag against moves\n(down and left is better)", loc="left")


def _place(ratio: float | str) -> float:
    return _NEVER if isinstance(ratio, str) else min(ratio, _NEVER)
