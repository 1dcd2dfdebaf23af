"""The result of a demo, for people and as JSON."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pipeline.operate.demo.folder import Folder
from pipeline.operate.demo.report.results import GroupResult, result_of, results_table
from pipeline.operate.demo.report.timeline import GroupTimeline
from pipeline.operate.demo.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The fields of `--json`."""

    batches: int
    batch_seconds_p50: float | None
    """None without any batch."""
    groups: int
    partitions: int
    """Counted once for each group that reads them."""
    total_lag: int
    """Records."""
    published: int
    """Plans on the control topic, one per epoch."""
    tables_root: str
    control_topic: str
    bootstrap_servers: str
    by_group: tuple[GroupResult, ...]
    """Results in the order of the scenario."""
    plot: str | None
    """File of the plot; None without anything to plot."""

    def write(self, file: Path) -> None:
        """Write it as one JSON object."""
        file.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    def lines(self) -> list[str]:
        """The summary as lines of text."""
        p50 = f", half of them within {self.batch_seconds_p50:.1f} s" if self.batch_seconds_p50 else ""
        return [
            f"{self.batches} batches{p50}",
            f"{self.groups} groups on {self.partitions} partitions, {self.total_lag:,} records behind",
            f"{self.published} assignments published on {self.control_topic}",
            *(["", *results_table(self.by_group)] if self.by_group else []),
            *(["", f"lag over time: {self.plot}"] if self.plot else []),
        ]


def summarise(
    batch_seconds: Sequence[float],
    final: Snapshot,
    timelines: Sequence[GroupTimeline],
    *,
    folder: Folder,
    control_topic: str,
    bootstrap: str,
) -> Summary:
    """The summary of a demo; `final` has the tables at its end, with all plans that were made."""
    return Summary(
        batches=len(batch_seconds),
        batch_seconds_p50=round(statistics.median(batch_seconds), 3) if batch_seconds else None,
        groups=len(final.groups),
        partitions=final.partitions,
        total_lag=final.lag,
        published=sum(plan.decision == "publish" for plan in final.plans),
        tables_root=str(folder.tables.absolute()),
        control_topic=control_topic,
        bootstrap_servers=bootstrap,
        by_group=tuple(map(result_of, timelines)),
        plot=str(folder.plot.absolute()) if timelines else None,
    )


def next_commands(folder: Folder, *, kept: bool, bootstrap: str) -> list[str]:
    """Commands to try next; a demo that ended before its broker answered has left nothing to look at."""
    if not (kept and bootstrap):
        return [
            "lagwise demo --keep                       leave tables and broker data to look at",
            "lagwise run --config conf/lagwise.toml    watch your own cluster (a dry run by default)",
        ]
    port = bootstrap.rpartition(":")[2]
    return [
        f"lagwise lag --top 10 --tables {folder.tables}",
        f"lagwise recommendations --last 3 --detail --tables {folder.tables}",
        f"lagwise history --group billing --tables {folder.tables}",
        f"lagwise serve --tables {folder.tables}    # the page",
        f"lagwise broker --data {folder.broker} --port {port} &",
        f"lagwise control tail --no-follow --config {folder.config}",
    ]
