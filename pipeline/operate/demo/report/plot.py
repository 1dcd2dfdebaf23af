"""The demo's plot: lag of groups that follow and of their control groups, as one HTML file that needs no network.

The picture is an SVG within the page, some 40 kB: ADR 0007 says why.
"""

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from pipeline.operate.demo.report.results import HEADINGS, cells, result_of
from pipeline.operate.demo.report.timeline import ONE_POLL_S, GroupTimeline
from pipeline.operate.demo.scenario import Scenario

_FOLLOWS, _PLAIN = "#1668b8", "#c2571a"
_WIDTH_IN, _PANEL_IN = 9.0, 3.1
_TOGETHER_S = 10.0

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>lagwise demo</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
svg {{ width: 100%; height: auto }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem }}
th, td {{ padding: 0.25rem 0.8rem; text-align: right; border-bottom: 1px solid #ddd }}
th:nth-child(-n+2), td:nth-child(-n+2) {{ text-align: left }}
</style>
</head>
<body>
<h1>Lag with and without following</h1>
<p>Each picture shows two groups of the same members, as fast as each other, on the same topic. One takes over the
assignments that lagwise publishes, through its members or, if it is a KIP-848 group, through the broker; the other
keeps what Kafka gave it. They start on a topic that has been filling for a while.</p>
{picture}
<table>
<tr>{headings}</tr>
{rows}
</table>
<p>Times are seconds since those members started. Drained: at its commits a
group had left unread what arrives in {drained:.0f} s at most.
Lag is in records, as the stream wrote it into <code>partition_lag</code> with each batch.</p>
</body>
</html>
"""


def write(path: Path, timelines: Sequence[GroupTimeline], scenario: Scenario) -> None:
    """Write the page; groups of `scenario` that were not seen are left out."""
    by_id = {timeline.group_id: timeline for timeline in timelines}
    pairs = [
        (group.note, by_id[group.group_id], by_id[other.group_id])
        for group, other in scenario.pairs()
        if {group.group_id, other.group_id} <= by_id.keys()
    ]
    page = _PAGE.format(
        picture=_picture(pairs) if pairs else "",
        headings="".join(f"<th>{escape(heading.capitalize())}</th>" for heading in HEADINGS),
        rows="\n".join(_row(timeline) for timeline in timelines),
        drained=ONE_POLL_S,
    )
    path.write_text(page, encoding="utf-8")


def _row(timeline: GroupTimeline) -> str:
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells(result_of(timeline)))}</tr>"


def _picture(pairs: Sequence[tuple[str, GroupTimeline, GroupTimeline]]) -> str:
    """An `svg` element, the same for the same timelines."""
    with mpl.rc_context({"svg.hashsalt": "lagwise", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(_WIDTH_IN, _PANEL_IN * len(pairs)), layout="constrained")
        panels = figure.subplots(len(pairs), 1, squeeze=False, sharex=True)[:, 0]
        for axes, (note, following, plain) in zip(panels, pairs, strict=True):
            _panel(axes, note, following, plain)
        panels[-1].set_xlabel("seconds since the consumers started")
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _panel(axes: Axes, note: str, following: GroupTimeline, plain: GroupTimeline) -> None:
    for timeline, colour in ((plain, _PLAIN), (following, _FOLLOWS)):
        label = f"{timeline.group_id} ({'follows' if timeline.follows else 'does not follow'})"
        times, lags = [point.at_s for point in timeline.points], [point.lag for point in timeline.points]
        axes.plot(times, lags, color=colour, linewidth=1.8, marker=".", markersize=4, label=label)
        if timeline.drained_s is not None:
            _mark_drained(axes, timeline, timeline.drained_s, colour)
    for at_s in following.moves_at_s:
        axes.axvline(at_s, color=_FOLLOWS, linewidth=0.8, linestyle=":")
    for last_s, count in _together(following.moves_at_s):
        axes.annotate(
            f"{count} moved",
            (last_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, -11),
            textcoords="offset points",
            color=_FOLLOWS,
            fontsize=8,
        )
    axes.set_title(f"{following.group_id}: {note}", loc="left", fontsize=11)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("lag, records")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda lag, _: f"{lag:,.0f}"))
    axes.grid(linewidth=0.4, alpha=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    # Above the axes, where no line and no move can be.
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, frameon=False, fontsize=9)


def _mark_drained(axes: Axes, timeline: GroupTimeline, drained_s: float, colour: str) -> None:
    lag = next(point.lag for point in timeline.points if point.at_s >= drained_s)
    axes.plot([drained_s], [lag], "o", color=colour, markersize=7)
    axes.annotate(
        f"drained after {drained_s:.0f} s",
        (drained_s, lag),
        xytext=(0, 12),
        textcoords="offset points",
        color=colour,
        fontsize=9,
    )


def _together(times_s: Sequence[float]) -> list[tuple[float, int]]:
    """Ends and numbers of moves; moves that follow one another closely count as one."""
    found: list[tuple[float, int]] = []
    for at_s in sorted(times_s):
        goes_on = found and at_s - found[-1][0] <= _TOGETHER_S
        found.append((at_s, found.pop()[1] + 1 if goes_on else 1))
    return found
