"""The view on a terminal: one screen, redrawn in place."""

import statistics
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from pipeline.operate.demo.moves import Move
from pipeline.operate.demo.snapshot import Plan, Snapshot
from pipeline.operate.demo.views.live_tables import (
    Entry,
    entry_of_moves,
    entry_of_plan,
    entry_table,
    lag_table,
)
from pipeline.operate.demo.views.words import has_target
from pipeline.run.query import Report

_REDRAWS_PER_S = 4
_BATCHES_FOR_MEDIAN = 50
_HEADINGS = 5
"""Lines in addition to those of groups and newest plans."""
_MARKED_S = 30.0
"""Time for which a member shows the partitions that it got or gave up."""


class Screen:
    """Shows the newest snapshot; phases before the first are lines with a spinner."""

    def __init__(self, console: Console, *, tables: Path, log: Path) -> None:
        self._console = console
        self._tables = tables
        self._log = log
        self._report: Report | None = None
        self._snapshot = Snapshot(groups=(), plans=(), seen_at=None)
        self._seconds: deque[float] = deque(maxlen=_BATCHES_FOR_MEDIAN)
        self._published = 0
        self._page = ""
        self._newest: dict[str, Entry] = {}
        self._earlier: deque[Entry] = deque(maxlen=50)
        self._marks: deque[tuple[float, Move]] = deque(maxlen=500)
        self._begun_at_s = self._shown_at_s = time.monotonic()

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        """Show a spinner while the body runs, then its time."""
        begun = time.monotonic()
        with self._console.status(f"{text} …"):
            yield
        took = time.monotonic() - begun
        self._console.print(Text.assemble(("✓ ", "green"), text, (f"  {took:.1f} s", "dim")))

    @contextmanager
    def open(self) -> Iterator[None]:
        """Use the whole screen while the body runs, and restore the terminal afterwards."""
        self._begun_at_s = time.monotonic()
        with Live(
            console=self._console,
            get_renderable=self.draw,
            screen=True,
            refresh_per_second=_REDRAWS_PER_S,
            redirect_stdout=False,
            redirect_stderr=False,
        ):
            yield

    def show_page(self, address: str) -> None:
        """Show the page's address: on a line of its own until the first batch, then below the tables."""
        self._page = address
        if self._report is None:
            self._console.print(Text.assemble(("✓ ", "green"), f"page: {address}"))

    def show(self, report: Report, snapshot: Snapshot) -> None:
        """Show a finished batch."""
        self._seconds.append(report.seconds)
        self._published += report.published
        for plan in snapshot.plans:
            self._show_plan(plan)
        self._report, self._snapshot, self._shown_at_s = report, snapshot, time.monotonic()

    def show_moves(self, moves: Sequence[Move]) -> None:
        """Show partitions that have just moved: a mark at the members, and one line for each group."""
        now_s = time.monotonic()
        self._marks += [(now_s, move) for move in moves]
        for group_id in dict.fromkeys(move.group_id for move in moves):
            self._earlier.append(entry_of_moves([move for move in moves if move.group_id == group_id]))

    def _show_plan(self, plan: Plan) -> None:
        entry = entry_of_plan(plan)
        self._newest[plan.group_id] = entry
        if has_target(plan):
            self._earlier.append(entry)

    def draw(self) -> RenderableType:
        """The current screen, for the current size of the terminal."""
        if self._report is None:
            return Text("no batch yet")
        newest = [self._newest[name] for name in sorted(self._newest)]
        groups = self._snapshot.groups
        free = self._console.height - len(newest) - _HEADINGS
        members = sum(len(group.shares) for group in groups)
        folded = members > free
        room = max(0, free - (len(groups) if folded else members) - 2)
        earlier = [entry for entry in reversed(self._earlier) if entry not in newest][:room]
        return Group(
            self._headline(self._report),
            lag_table(groups, gained=self._gained(), folded=folded),
            Text(),
            entry_table(newest, earlier),
            *self._footer(),
        )

    def _gained(self) -> Counter[str]:
        """Partitions that each client id has recently got, minus those that it gave up."""
        gained: Counter[str] = Counter()
        for at_s, move in self._marks:
            if time.monotonic() - at_s < _MARKED_S:
                gained.update({move.to_client: 1})
                gained.subtract({move.from_client: 1})
        return gained

    def _headline(self, report: Report) -> Text:
        ran = int(time.monotonic() - self._begun_at_s)
        return _line(
            ("lagwise demo ", "bold"),
            (f"{ran // 60}:{ran % 60:02d}  ", "dim"),
            f"batch {report.stamp.batch_id} took {report.seconds:.1f} s ",
            (f"(median {statistics.median(self._seconds):.1f})", "dim"),
            f"  lag {self._snapshot.lag:,}  published {self._published}",
        )

    def _footer(self) -> tuple[Text, Text]:
        age = time.monotonic() - self._shown_at_s
        return (
            _line(
                *(("page ", "dim"), self._page, "  ") if self._page else (),
                *(("tables ", "dim"), str(self._tables), ("  log ", "dim"), str(self._log)),
            ),
            _line((f"seen {age:.0f} s ago · Ctrl-C ends · elsewhere try: lagwise lag --top 10", "dim")),
        )


def _line(*parts: str | tuple[str, str]) -> Text:
    text = Text.assemble(*parts)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
