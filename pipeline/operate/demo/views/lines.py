"""The view without a terminal: a line per batch, new decision and move, and sometimes a small table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from pipeline.operate.demo.moves import Move
from pipeline.operate.demo.snapshot import Plan, Snapshot
from pipeline.operate.demo.views.words import grounds, handed_over, verdict
from pipeline.run.query import Report

_TABLE_EVERY_BATCHES = 3


class Lines:
    """Prints events, the oldest first, each once."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._batches = 0
        self._said: dict[str, tuple[str, str | None]] = {}

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        """Print the phase."""
        self._say(f"{text} …")
        yield

    @contextmanager
    def open(self) -> Iterator[None]:
        """Prepare nothing: lines need no screen."""
        yield

    def show_page(self, address: str) -> None:
        """Print the address of the page."""
        self._say(f"page: {address}")

    def show(self, report: Report, snapshot: Snapshot) -> None:
        """One finished batch."""
        self._say(
            f"batch {report.stamp.batch_id}  {report.seconds:.1f} s  lag {snapshot.lag:,}  "
            f"published {report.published}"
        )
        if report.stamp.reason:
            self._say(f"no plans yet: {report.stamp.reason}")
        else:
            for plan in snapshot.plans:
                self._show_plan(plan)
        if self._batches % _TABLE_EVERY_BATCHES == 0:
            self._show_table(snapshot)
        self._batches += 1

    def show_moves(self, moves: Sequence[Move]) -> None:
        """Partitions that have just changed hands."""
        for move in moves:
            self._say(f"{move.group_id}: moved {handed_over(move)} (epoch {move.epoch})")

    def _show_plan(self, plan: Plan) -> None:
        news = (verdict(plan), plan.reason)
        if self._said.get(plan.group_id) != news:
            self._said[plan.group_id] = news
            self._say(f"{plan.group_id}: {verdict(plan)}: {grounds(plan)}")

    def _show_table(self, snapshot: Snapshot) -> None:
        self._say(
            f"  {'GROUP':14} {'MEMBER':16} {'PARTITIONS':>10} {'LAG':>9} {'IN/S':>6} {'OUT/S':>6}  STATUS"
        )
        for group in snapshot.groups:
            for share in group.shares:
                self._say(
                    f"  {group.group_id:14} {share.client_id or '-':16} {share.partitions:10} {share.lag:9,} "
                    f"{share.arrival_rate:6.0f} {share.drain_rate:6.0f}  {share.status}"
                )

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, emoji=False)
