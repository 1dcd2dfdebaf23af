"""The job in a thread of its own, on a broker of the test's; its batches waited for, its tables read without Spark.

One at a time: all jobs of a pytest process share its one Spark session. Between two waits a job begins no batch, and
leaves the processor to the other tests.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from deltalake import DeltaTable

from pipeline import logs
from pipeline.clock import now_ms
from pipeline.config.load import load
from pipeline.config.model import (
    Config,
    GuardsConfig,
    KafkaConfig,
    PlanConfig,
    SourceConfig,
    TablesConfig,
    TriggerConfig,
)
from pipeline.operate.health import look
from pipeline.run.job import Job
from pipeline.run.query import Report, RunBatch
from pipeline.tables.owner.health import Health
from pipeline.tables.reading import Tables
from tests.support.job.steps import AMONG_GHOSTS
from tests.support.waiting import wait_until

Row = dict[str, Any]

_BATCH_WITHIN_S = 400.0
_STOPPED_WITHIN_S = 120.0
_RUN_OUT_WITHIN_S = 300.0
# Conditions read tables, and are met by whole batches: to look more often costs more than it saves.
_LOOK_EVERY_S = 0.25


class RunningJob:
    """One job. Between two waits it rests: the batch at hand ends, and no other begins.

    Attributes:
        reports: Of every finished batch, oldest first.
        messages: What it logged at INFO and above, one line each, with the fields.
    """

    def __init__(
        self,
        config: Config,
        *,
        once: bool = False,
        rests: bool = True,
        run_batch: RunBatch = AMONG_GHOSTS,
        takes_over: bool = False,
    ) -> None:
        """Nothing is started.

        Args:
            config: Of the job.
            once: As of `Job`.
            rests: Begin batches only while somebody waits; without it, one after the other, as for an operator.
            run_batch: As of `Job`; forged groups are not held for deleted ones unless it says so.
            takes_over: As of `Job`.
        """
        self.config = config
        self.reports: list[Report] = []
        self.messages: list[str] = []
        self.failure: BaseException | None = None
        self._rests = rests and not once
        self._turn = Lock()
        self._may_begin = Event()
        self._may_begin.set()
        self._job = Job(
            config, once=once, on_batch=self._finished, run_batch=run_batch, takes_over=takes_over
        )
        self._thread = Thread(target=self._run, name="job", daemon=True)

    @property
    def is_incomplete(self) -> bool:
        """As `Job.is_incomplete`."""
        return self._job.is_incomplete

    def start(self) -> None:
        """Return at once; the first batch takes a while."""
        self._thread.start()

    def run_out(self) -> list[str]:
        """What it logged, once it was started, has done all and has ended by itself; a failure of the job is raised."""
        self.start()
        self.join(_RUN_OUT_WITHIN_S)
        if self.failure is not None:
            raise self.failure
        assert not self.is_incomplete
        return self.messages

    def stop(self) -> None:
        """End it between two batches, as SIGTERM does.

        Raises:
            AssertionError: It does not end.
        """
        self._job.stop.set()
        self.join()

    def join(self, within_s: float = _STOPPED_WITHIN_S) -> None:
        """Return when it has ended; it goes on until then."""
        self._rests = False
        self._may_begin.set()
        self._thread.join(within_s)
        assert not self._thread.is_alive(), f"the job did not end within {within_s:.0f} s"

    def wait(self, condition: Callable[[], object], *, what: str, within_s: float = _BATCH_WITHIN_S) -> None:
        """Return as soon as the condition holds; a job that fails meanwhile is raised at once."""

        def holds() -> bool:
            if self.failure is not None:
                raise AssertionError(f"the job failed while waiting for {what}") from self.failure
            # A batch ends before the condition is looked at or after it: what it leaves asks for no other one.
            with self._turn:
                if condition():
                    return True
                self._may_begin.set()
            return False

        wait_until(
            holds,
            what=f"{what}; {len(self.reports)} batches finished",
            within_s=within_s,
            every_s=_LOOK_EVERY_S,
        )

    def wait_for_batches(self, count: int = 1) -> None:
        """Return when so many batches have finished that began after this call."""
        with self._turn:
            under_way = 1 if self._may_begin.is_set() else 0
            wanted = len(self.reports) + under_way + count
        self.wait(lambda: len(self.reports) >= wanted, what=f"{count} more batches")

    def rows(self, table: str) -> list[Row]:
        """All rows of the table's newest version."""
        return read_table(self.config, table)

    def lags(self, group_id: str) -> dict[tuple[str, int], Row]:
        """Rows of `partition_lag` of one group by topic and partition."""
        return {
            (row["topic"], row["partition"]): row
            for row in self.rows("partition_lag")
            if row["group_id"] == group_id
        }

    def last_decision(self, group_id: str) -> Row:
        """Row of `plan_state` of one group."""
        (row,) = (row for row in self.rows("plan_state") if row["group_id"] == group_id)
        return row

    def _finished(self, report: Report) -> None:
        """The end of a batch, in the job's thread, which the next one waits for."""
        with self._turn:
            self.reports.append(report)
            if self._rests:
                self._may_begin.clear()
        while self._rests and not self._may_begin.wait(_LOOK_EVERY_S):
            pass

    def _run(self) -> None:
        with _captured(self.messages):
            try:
                self._job.run()
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
                self.failure = error


@contextmanager
def running(
    config: Config, *, rests: bool = True, run_batch: RunBatch = AMONG_GHOSTS
) -> Iterator[RunningJob]:
    """The job from its first finished batch to the end of the block."""
    job = RunningJob(config, rests=rests, run_batch=run_batch)
    job.start()
    try:
        job.wait(lambda: job.reports, what="the first batch")
        yield job
    finally:
        job.stop()
    if job.failure is not None:
        raise job.failure


NO_GUARDS = GuardsConfig(
    min_improvement=0,
    confirmations=1,
    settle_s=0,
    min_lag=0,
    min_lag_s=0,
    cooldown_s=0,
    cooldown_max_s=0,
    moves_share=1,
    partition_rest_s=0,
    partition_moves_per_day=1_000_000,
)


def eager_plan(**more: Any) -> PlanConfig:
    """A plan with nearly every batch, for any group whose lag is uneven, however small it is."""
    return PlanConfig(**{"interval_s": 1, "strategy": "lag-aware", "guards": NO_GUARDS, **more})


EAGER_PLAN = 'interval_s = 1\nstrategy = "lag-aware"\n[plan.guards]\n' + "".join(
    f"{name} = {value}\n" for name, value in NO_GUARDS.model_dump(exclude={"pin"}, exclude_none=True).items()
)
"""The same as lines of TOML, below `[plan]`."""


def job_config(bootstrap: str, root: Path, **sections: Any) -> Config:
    """A configuration for tests: a batch every second, a plan with nearly every batch, dry."""
    return Config(
        **{
            "kafka": KafkaConfig(properties={"bootstrap.servers": bootstrap, "log_level": "0"}),
            "tables": TablesConfig(root=str(root)),
            "trigger": TriggerConfig(interval_s=1),
            "source": SourceConfig(request_timeout_s=5),
            "plan": eager_plan(),
            **sections,
        }
    )


def write_config(
    file: Path, bootstrap: str, root: Path | str, *, publishes: bool = False, **tables: str
) -> Config:
    """The same as a file for the command line, and what it says; other keywords are keys of `[tables]`."""
    places = "".join(f'{name} = "{value}"\n' for name, value in {"root": root, **tables}.items())
    file.write_text(
        f'[kafka.properties]\n"bootstrap.servers" = "{bootstrap}"\n[tables]\n{places}'
        f"[trigger]\ninterval_s = 1\n[plan]\ndry_run = {str(not publishes).lower()}\n{EAGER_PLAN}",
        encoding="utf-8",
    )
    return load(file)


def health_of(job: RunningJob) -> Health:
    """How somebody sees it who reads its tables."""
    return look(
        Tables(job.config.tables.root, job.config.tables.storage_options), job.config, now_ms=now_ms()
    )


def read_table(config: Config, table: str) -> list[Row]:
    """All rows of the table's newest version, as anybody reads them."""
    tables = config.tables
    handle = DeltaTable(f"{tables.root}/{table}", storage_options=tables.storage_options or None)
    rows: list[Row] = handle.to_pyarrow_table().to_pylist()
    return rows


@contextmanager
def _captured(messages: list[str]) -> Iterator[None]:
    """What `pipeline` logs, without the traces."""
    handler = _Lines(messages)
    logger = logging.getLogger("pipeline")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


class _Lines(logging.Handler):
    """Keeps the line that `logs.configure` would print."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.INFO)
        self._messages = messages
        self.setFormatter(logs._Line())

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(self.format(record))
