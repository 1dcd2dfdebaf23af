"""Following helps: the demo's two scenarios on a real broker, under the real stream, with and without following.

Each run has fresh topics and groups. In one scenario traffic of 40 s is there when the consumers start, and goes on;
one member is buried, since it has the hot partitions. In the other nothing is there, and one member is half as fast as
the others. Pairs of groups that differ only in that one of them follows run side by side. Beside all runs an even
group is watched, for which nothing should be published. Members commit once a second, or (`follow-helps-30s`) every 30 s.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.jars import resolve_for_spark
from pipeline.operate.demo.engine import Engine
from pipeline.operate.demo.folder import TEMPLATE
from pipeline.operate.demo.moves import Move, MovesReader
from pipeline.operate.demo.processes.launcher import Processes, create_stream_topics
from pipeline.operate.demo.scenario import BESIDE, PAIRED, PHASE_S, Group, Scenario
from pipeline.run.spark.session import PACKAGES
from pipeline.tables.reading import Tables
from tests.benchmarks.follow_ruler import BEHIND_S, Measured, Ruler

Say = Callable[[str], None]

_RUNS = 5
_SELDOM_S = 30.0
_EVEN = "search"
_EVEN_FOR_S = 600.0
_AT_MOST_S = 200.0
_BROKER = {"offsets.topic.num.partitions": "4", "group.initial.rebalance.delay.ms": "1000"}

# The hot spot and the burst of a second phase would be another experiment.
assert _AT_MOST_S < PHASE_S


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Seconds until drained for each pair and run, the ratios, moves, and what was published for the even group."""
    return measure_pairs(PAIRED, say, quick=quick)


def measure_seldom(say: Say, *, quick: bool) -> dict[str, Any]:
    """The same with members that commit every 30 s."""
    groups = tuple(replace(group, commit_s=_SELDOM_S) for group in PAIRED.groups)
    return measure_pairs(replace(PAIRED, groups=groups), say, quick=quick)


def measure_pairs(pairs: Scenario, say: Say, *, quick: bool) -> dict[str, Any]:
    """The same of any pairs."""
    with tempfile.TemporaryDirectory(prefix="lagwise-bench-") as folder, ExitStack() as cleanup:
        broker = cleanup.enter_context(EmbeddedBroker(properties=_BROKER))
        config = _config(broker.bootstrap_servers, Path(folder))
        setup = _Setup(config, pairs, cleanup)
        begun_s = time.monotonic()
        runs = [setup.run(number, say) for number in range(1, 2 if quick else _RUNS + 1)]
        while not quick and time.monotonic() - begun_s < _EVEN_FOR_S:
            setup.check()
            time.sleep(1)
        even = setup.even(time.monotonic() - begun_s)
    say(f"even group: {even}")
    return {
        "drained_when_behind_s": BEHIND_S,
        "runs": runs,
        "even": even,
        "tables": [_totals(runs), _each(runs), _even_table(even)],
    }


class _Setup:
    """The stream on a broker, and the even group; the pairs come and go."""

    def __init__(self, config: Config, pairs: Scenario, cleanup: ExitStack) -> None:
        self._config, self._pairs = config, pairs
        self._bootstrap = config.kafka.properties["bootstrap.servers"]
        create_stream_topics(self._bootstrap, config)
        self._even = _only(BESIDE, [group for group in BESIDE.groups if group.group_id == _EVEN])
        self._even_processes = cleanup.enter_context(closing(Processes(self._bootstrap, self._even)))
        self._engine = Engine(config.spark, jars=resolve_for_spark(PACKAGES))
        cleanup.callback(self._engine.close)
        self._batches = 0
        self._engine.session.result()
        self._engine.run(config, on_batch=lambda _: self._count())
        cleanup.callback(self._engine.stop)
        # Its first batch takes longer than any other, and would be a part of the first run.
        while self._batches < 2:
            self.check()
            time.sleep(1)

    def check(self) -> None:
        """Raise what anybody ended with."""
        self._engine.check()
        self._even_processes.check()

    def run(self, number: int, say: Say) -> list[dict[str, Any]]:
        """One run of all pairs: a row for each."""
        scenario = _renamed(self._pairs, f"run{number}-")
        moves: list[Move] = []
        with (
            closing(MovesReader(self._bootstrap, self._config.control)) as acks,
            closing(Processes(self._bootstrap, scenario)) as processes,
            closing(Ruler(self._bootstrap, scenario)) as ruler,
        ):
            for _ in ruler.rounds(at_most_s=_AT_MOST_S):
                self.check()
                processes.check()
                moves += acks.read()
        rows = [_row(number, scenario, pair, ruler.measured, moves) for pair in scenario.pairs()]
        for row, (group, _) in zip(rows, scenario.pairs(), strict=True):
            say(f"{ {name: value for name, value in row.items() if name != 'lag'} }")
            row["decided"] = self._decided(group.group_id)
        return rows

    def even(self, for_s: float) -> dict[str, Any]:
        """What was decided about the even group."""
        plans = Tables(self._config.tables.root).read("recommendations", columns=["group_id", "decision"])
        of_even = plans.filter(pc.field("group_id") == _EVEN)["decision"]
        return {
            "seconds": round(for_s),
            "evaluated": len(of_even),
            "published": pc.sum(pc.equal(of_even, "publish")).as_py() or 0,
        }

    def _decided(self, group_id: str) -> list[str]:
        """What was decided about a group, each once, oldest first."""
        columns = ["group_id", "created_at", "decision", "reason"]
        plans = Tables(self._config.tables.root).read("recommendations", columns=columns)
        rows = plans.filter(pc.field("group_id") == group_id).sort_by("created_at").to_pylist()
        return list(dict.fromkeys(f"{row['decision']}: {row['reason']}" for row in rows))

    def _count(self) -> None:
        self._batches += 1


def _config(bootstrap: str, folder: Path) -> Config:
    """The demo's configuration, written below `folder`."""
    text = TEMPLATE.read_text(encoding="utf-8")
    file = folder / "lagwise.toml"
    file.write_text(text.replace("localhost:9092", bootstrap).replace(".lagwise/demo", str(folder)))
    return load(file)


def _only(scenario: Scenario, groups: Sequence[Group]) -> Scenario:
    read = {topic for group in groups for topic in group.topics}
    return Scenario(
        topics=tuple(topic for topic in scenario.topics if topic.name in read), groups=tuple(groups)
    )


def _renamed(scenario: Scenario, prefix: str) -> Scenario:
    return Scenario(
        topics=tuple(replace(topic, name=prefix + topic.name) for topic in scenario.topics),
        groups=tuple(
            replace(
                group,
                group_id=prefix + group.group_id,
                topics=tuple(prefix + topic for topic in group.topics),
            )
            for group in scenario.groups
        ),
    )


def _row(
    number: int,
    scenario: Scenario,
    pair: tuple[Group, Group],
    measured: dict[str, Measured],
    moves: Sequence[Move],
) -> dict[str, Any]:
    following, plain = (measured[group.group_id] for group in pair)
    group = pair[0]
    partitions = next(topic.partitions for topic in scenario.topics if topic.name in group.topics)
    own = [move for move in moves if move.group_id == group.group_id]
    # A group that was not drained would have taken longer than it was watched.
    least_s = plain.drained_s or plain.points[-1][0]
    return {
        "scenario": group.note,
        "run": number,
        "following_s": following.drained_s,
        "plain_s": plain.drained_s,
        "times_sooner": round(least_s / following.drained_s, 2) if following.drained_s else None,
        "area_following": _area(following),
        "area_plain": _area(plain),
        "times_less_lag": round(_area(plain) / max(_area(following), 1), 2),
        "moves": len(own),
        "partitions": partitions,
        "plans": len({move.epoch for move in own}),
        "lag": {"following": following.points[::10], "plain": plain.points[::10]},
    }


def _area(measured: Measured) -> int:
    """Record-seconds of lag while the group was watched."""
    points = measured.points
    return round(sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points)))


def _totals(runs: Sequence[list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians over the runs of each scenario; what was not drained counts as never, also where nothing was to drain."""
    rows = []
    for pair in zip(*runs, strict=True):
        sooner = [row["times_sooner"] or 0.0 for row in pair]
        most_moves = max(row["moves"] / row["partitions"] for row in pair)
        rows.append(
            [
                pair[0]["scenario"],
                len(pair),
                _seconds(statistics.median(row["following_s"] or float("inf") for row in pair)),
                _seconds(statistics.median(row["plain_s"] or float("inf") for row in pair)),
                statistics.median(sooner),
                min(sooner),
                statistics.median(row["times_less_lag"] for row in pair),
                min(row["times_less_lag"] for row in pair),
                f"{most_moves:.1%}",
            ]
        )
    return {
        "header": [
            "scenario",
            "runs",
            "drained, following, median s",
            "drained, not following, median s",
            "times sooner, median",
            "least",
            "times less lag over time, median",
            "least",
            "moves, most, of the partitions",
        ],
        "rows": rows,
    }


def _each(runs: Sequence[list[dict[str, Any]]]) -> dict[str, Any]:
    names = (
        *("scenario", "run", "following_s", "plain_s", "times_sooner", "times_less_lag"),
        *("moves", "partitions", "plans"),
    )
    return {"header": list(names), "rows": [[row[name] for name in names] for run in runs for row in run]}


def _even_table(even: dict[str, Any]) -> dict[str, Any]:
    return {"header": [f"even group: {name}" for name in even], "rows": [list(even.values())]}


def _seconds(value: float) -> float | str:
    return f"more than {_AT_MOST_S:.0f}" if value == float("inf") else value
