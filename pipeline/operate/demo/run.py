"""The demo from beginning to end."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from datetime import datetime, timezone
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event

from rich.console import Console

from pipeline.config.load import load
from pipeline.errors import BrokerUnavailableError, MissingDependencyError
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve, resolve_for_spark
from pipeline.operate.background import in_background
from pipeline.operate.demo import interruption
from pipeline.operate.demo.broker import demo_broker
from pipeline.operate.demo.engine import Engine
from pipeline.operate.demo.folder import TEMPLATE, Folder
from pipeline.operate.demo.moves import Move, MovesReader
from pipeline.operate.demo.page import Page
from pipeline.operate.demo.processes.java import make_broker_jar, make_jar
from pipeline.operate.demo.processes.launcher import Processes, create_stream_topics
from pipeline.operate.demo.report import plot
from pipeline.operate.demo.report.summary import Summary, summarise
from pipeline.operate.demo.report.timeline import Timeline
from pipeline.operate.demo.scenario import BESIDE, JAVA, KIP848, PAIRED, Scenario
from pipeline.operate.demo.snapshot import Snapshot, read_snapshot
from pipeline.operate.demo.views.lines import Lines
from pipeline.operate.demo.views.live import Screen
from pipeline.run.query import Report
from pipeline.run.spark.session import PACKAGES
from pipeline.tables.reading import Tables

_LOOK_EVERY_S = 0.2
_PLAYED = (PAIRED, KIP848, JAVA, BESIDE)
_ALL = Scenario(
    topics=tuple(topic for one in _PLAYED for topic in one.topics),
    groups=tuple(group for one in _PLAYED for group in one.groups),
)


class DemoRun:
    """One run of the demo in its folder."""

    def __init__(self, folder: Folder, console: Console, *, seconds: float | None) -> None:
        """Start nothing; the demo is to end `seconds` after its first batch, or at Ctrl-C if that is None."""
        self._folder = folder
        self._console = console
        self._seconds = seconds
        self._tables = Tables(str(folder.tables))
        self._bootstrap = ""
        self._has_assignor = False
        self._plans_until: datetime | None = None
        self._batch_seconds: list[float] = []
        self._timeline = Timeline(_ALL, began_at=datetime.now(tz=timezone.utc))
        self._view: Screen | Lines = (
            Screen(console, tables=folder.tables, log=folder.log) if console.is_terminal else Lines(console)
        )

    def run(self) -> Summary:
        """Start everything, show it, end everything, and return the summary.

        Raises:
            PipelineError: Something could not be started, or ended unexpectedly.
        """
        resolve(KAFKA, report=self._console.print)
        jars = resolve_for_spark(PACKAGES, report=self._console.print)
        with interruption.ended_by_signals(self._console.show_cursor) as asked, ExitStack() as cleanup:
            closed_last = cleanup.enter_context(ExitStack())
            engine = Engine(load(TEMPLATE).spark, jars=jars)
            cleanup.callback(engine.close)
            broker = self._started(engine, asked, closed_last)
            if broker:
                self._play(broker, engine, asked, cleanup)
            with self._view.phase("ending"):
                cleanup.close()
        return self._sum_up()

    def _started(self, engine: Engine, asked: Event, cleanup: ExitStack) -> EmbeddedBroker | None:
        """Wait for Kafka and Spark; return the broker, or None if a signal has come before."""
        with self._view.phase("starting Kafka and Spark (about 15 s)"):
            jar = self._made(in_background(make_broker_jar), asked, lacking="no KIP-848 group that follows")
            self._has_assignor = jar is not None
            broker = demo_broker(self._folder.broker, assignor=jar)
            if not asked.is_set():
                cleanup.callback(broker.close)
                for one in (in_background(broker.start), engine.session):
                    interruption.is_done(one, asked)
        return None if asked.is_set() else broker

    def _play(self, broker: EmbeddedBroker, engine: Engine, asked: Event, cleanup: ExitStack) -> None:
        with self._view.phase("creating topics, starting producer and consumers"):
            self._bootstrap = broker.bootstrap_servers
            self._folder.write_config(self._bootstrap)
            config = load(self._folder.config)
            page = self._page(cleanup)
            create_stream_topics(self._bootstrap, config)
            moves = cleanup.enter_context(closing(MovesReader(self._bootstrap, config.control)))
            running = cleanup.enter_context(ExitStack())
            started = [running.enter_context(closing(Processes(self._bootstrap, BESIDE)))]
        reports: SimpleQueue[Report] = SimpleQueue()

        def on_batch(report: Report) -> None:
            # Counted here, since the last batch is never shown.
            self._batch_seconds.append(report.seconds)
            reports.put(report)

        engine.run(config, on_batch=on_batch)
        jar = in_background(make_jar)
        # The stream stops before the consumers, so that the tables show running ones.
        cleanup.callback(engine.stop)

        def meanwhile() -> None:
            self._show_moves(moves.read())
            if page and (address := page.news()):
                self._view.show_page(address)
            engine.check()
            for processes in started:
                processes.check()
            if broker.pid is None:
                raise BrokerUnavailableError(
                    f"the broker stopped unexpectedly; see {self._folder.broker}/server.log"
                )

        with self._view.phase("running the first batch (about 20 s)"):
            report = _next(reports, asked, meanwhile, until_s=math.inf)
        if report is None:
            return
        with self._view.phase("starting groups that follow, and their control groups that do not"):
            started += [
                running.enter_context(closing(Processes(self._bootstrap, scenario)))
                for scenario in self._later(jar, asked)
            ]
            self._timeline = Timeline(_ALL, began_at=datetime.now(tz=timezone.utc))
        until_s = time.monotonic() + (math.inf if self._seconds is None else self._seconds)
        with self._view.open():
            while report:
                self._show_moves(moves.saw(self._show(report)))
                report = _next(reports, asked, meanwhile, until_s=until_s)

    def _later(self, jar: Future[Path], asked: Event) -> Iterator[Scenario]:
        """Scenarios that start once the broker runs."""
        yield PAIRED
        if self._has_assignor:
            yield KIP848
        if self._made(jar, asked, lacking="no group in Java"):
            yield JAVA

    def _made(self, jar: Future[Path], asked: Event, *, lacking: str) -> Path | None:
        """Wait for a jar; return it, or None after a signal or if something is missing, which is printed."""
        try:
            return jar.result() if interruption.is_done(jar, asked) else None
        except MissingDependencyError as error:
            if not asked.is_set():
                self._console.print(f"{lacking}: {error}", markup=False, emoji=False, soft_wrap=True)
            return None

    def _page(self, cleanup: ExitStack) -> Page | None:
        """The page until the end of the demo; None, with a remark, if its packages are missing."""
        try:
            return cleanup.enter_context(closing(Page(self._folder.config)))
        except MissingDependencyError as error:
            self._view.show_page(f"none; {error}")
            return None

    def _show_moves(self, moves: tuple[Move, ...]) -> None:
        if moves:
            self._timeline.moved(moves)
            self._view.show_moves(moves)

    def _show(self, report: Report) -> Snapshot:
        snapshot = read_snapshot(self._tables, plans_after=self._plans_until)
        self._plans_until = max((plan.created_at for plan in snapshot.plans), default=self._plans_until)
        self._timeline.saw(snapshot)
        self._view.show(report, snapshot)
        return snapshot

    def _sum_up(self) -> Summary:
        final = Snapshot(groups=(), plans=(), seen_at=None)
        if self._batch_seconds:
            final = read_snapshot(self._tables, plans_after=None)
        self._timeline.saw(final)
        timelines = self._timeline.groups()
        if timelines:
            plot.write(self._folder.plot, timelines, PAIRED)
        return summarise(
            self._batch_seconds,
            final,
            timelines,
            folder=self._folder,
            control_topic=load(TEMPLATE).control.topic,
            bootstrap=self._bootstrap,
        )


def _next(
    reports: "SimpleQueue[Report]", asked: Event, meanwhile: Callable[[], None], *, until_s: float
) -> Report | None:
    """The next batch; None after a signal or when the time is up. Calls `meanwhile` several times a second."""
    while not asked.is_set() and time.monotonic() < until_s:
        meanwhile()
        with suppress(Empty):
            return reports.get(timeout=_LOOK_EVERY_S)
    return None
