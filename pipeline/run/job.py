"""The job: configuration in, a running stream out; forever, or until the offsets topic was read (`once`)."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AdminClient
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from pipeline.clock import now_ms
from pipeline.config.model import Config
from pipeline.config.places import check_places
from pipeline.config.secret_values import resolve
from pipeline.errors import (
    AccessRefusedError,
    BrokerUnavailableError,
    OffsetsRefusedError,
    PipelineError,
    QueryFailedError,
    SparkEndedError,
    StorageUnavailableError,
    StoreError,
    TablesChangedError,
    TablesSetBackError,
    TopicMissingError,
)
from pipeline.kafka import cluster
from pipeline.kafka.client import unresolved
from pipeline.kafka.errors import explained
from pipeline.local.jars import resolve_for_spark
from pipeline.local.java import find_java
from pipeline.planning.memory import PlanMemory
from pipeline.publish.pokes import Pokes
from pipeline.run import query
from pipeline.run.assembly import (
    admin_client,
    as_found,
    build_filters,
    build_readiness,
    build_services,
    build_source,
    cluster_name,
)
from pipeline.run.batch.plans.history import record_left_decisions
from pipeline.run.batch.plans.late import connect
from pipeline.run.batch.steps import run
from pipeline.run.driver import Driver, ReadProgress
from pipeline.run.health.listener import SparkListener
from pipeline.run.health.monitor import Monitor
from pipeline.run.health.port import HealthPort
from pipeline.run.memory import recall
from pipeline.run.offsets_watch import OffsetsWatch
from pipeline.run.replay import ReplayContext
from pipeline.run.spark.catalog import register_tables
from pipeline.run.spark.executors import ExecutorWatch
from pipeline.run.spark.session import (
    PACKAGES,
    attempts_of_tasks,
    build_session,
    has_ended,
    is_submitted,
    master_of,
)
from pipeline.run.storage_wait import StorageWait
from pipeline.source.deadline import CLIENT_S
from pipeline.tables.owner import ownership, standby
from pipeline.tables.owner.heartbeat import Heartbeat
from pipeline.tables.storage import trouble_of
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from pipeline.tables.upkeep.upgrade import upgrade

log = logging.getLogger(__name__)

_LONGEST_WAIT_S = 15.0
_FAILURES_IN_A_ROW = 3
_IN_VAIN_S = 60.0
"""How long `once` continues while no record can be read or Kafka is unavailable; a usual transaction ends by then."""


def _ignore(_report: query.Report) -> None:
    pass


class Job:
    """One driver. `stop` may be set from any thread or signal handler."""

    def __init__(
        self,
        config: Config,
        *,
        once: bool = False,
        is_standby: bool = False,
        takes_over: bool = False,
        on_batch: Callable[[query.Report], None] = _ignore,
        run_batch: query.RunBatch = run,
    ) -> None:
        """Nothing is contacted before `run`."""
        self.config = config
        self.once = once
        self.is_standby = is_standby
        """Wait until the driver that owns the tables is gone, instead of taking over at once."""
        self.takes_over = takes_over
        """Publish though a driver of other tables does."""
        self.on_batch = on_batch
        self.run_batch = run_batch
        self.stop = threading.Event()
        self.is_incomplete = False
        """`once` gave up: the offsets topic could not be read to its end."""
        self._read_on_at_s: float | None = None
        """When a batch last came further in some log."""
        self._failures = 0
        """Failures of the query in a row, without a batch in between."""
        self._refusals = 0
        """Refusals of this user by the cluster, in a row."""
        self._is_topic_refused = False
        """Whether it has refused to let this user read the offsets topic."""
        self._waits = 0
        """Waits for the cluster in a row, without a batch in between."""
        self._owned: tuple[Store, str] | None = None
        """The tables as this process has taken them over last, and its name; what followed may have failed."""
        self._runner: query.Runner | None = None
        self._pokes = Pokes(unresolved(config))
        self.monitor = Monitor(interval_s=config.trigger.interval_s, deadline_s=config.start.deadline_s)
        self._storage = StorageWait(config.tables, self.monitor, self.stop)
        self._heartbeat = Heartbeat(
            config.tables.root, resolve(config.tables.storage_options), report=self.monitor.report
        )

    def run(self) -> None:
        """Run until `stop` is set; wait for an unavailable cluster, at the start or later.

        Raises:
            PipelineError: Waiting does not help: another driver took over, the cluster refused this user several times
            in a row, or the query failed as often without a batch in between.
        """
        check_places(
            self.config.tables, master=master_of(resolve(self.config.spark)), ships_code=is_submitted()
        )
        with HealthPort(self.config.health, self.monitor), self._heartbeat:
            if self.is_standby:
                self.monitor.at("standing by")
                standby.wait_for_turn(self.config, self._heartbeat, self.stop)
                self.monitor.at("starting")
            if not self.stop.is_set():
                self._run()

    def _run(self) -> None:
        self._make_tables()
        if self.stop.is_set():
            return
        spark = build_session(self.config.spark, jars=_jars())
        register_tables(spark, self.config.tables)
        spark.streams.addListener(SparkListener(self.monitor))
        while not self.stop.is_set():
            self._stream_until_it_ends(spark)
        if self.once:
            # No later batch publishes these plans again.
            self._pokes.finish()

    def _make_tables(self) -> None:
        tables = self.config.tables
        self._storage.until_usable()
        while not self.stop.is_set():
            try:
                create_tables(
                    tables.root,
                    retention_hours=tables.retention_hours,
                    storage_options=resolve(tables.storage_options),
                )
            except (OSError, StoreError, DeltaError) as error:
                why = trouble_of(error)
                if why is None:
                    raise
                self._storage.until_usable(why)
            else:
                return

    def _stream_until_it_ends(self, spark: SparkSession) -> None:
        try:
            self._stream(spark)
        except TopicMissingError as error:
            self._refusals = 0
            self._wait_for_cluster("a topic of the job is gone; the stream restarts", error)
        except BrokerUnavailableError as error:
            self._refusals = 0
            self._wait_for_cluster("Kafka is unavailable", error)
        except AccessRefusedError as error:
            self._refusals += 1
            self._is_topic_refused |= isinstance(error, OffsetsRefusedError)
            if self._refusals >= _FAILURES_IN_A_ROW:
                raise
            self._wait_for_cluster("Kafka denies access", error)
        except TablesChangedError as error:
            log.warning(
                "another process changed the tables; the stream restarts from them",
                extra={"error": str(error)},
            )
        except StorageUnavailableError as error:
            # The batch has waited already.
            log.warning("the tables could not be written; the stream restarts", extra={"error": str(error)})
        except (PySparkException, Py4JError, OSError, StoreError, DeltaError) as error:
            self._failed(spark, error)

    def _failed(self, spark: SparkSession, error: Exception) -> None:
        is_of_spark = not isinstance(error, StoreError | DeltaError)
        if is_of_spark and has_ended(spark):
            self._ended()
        elif (why := trouble_of(error, has_been_written=self._owned is not None)) is not None:
            self._storage.until_usable(why)
        elif isinstance(error, StreamingQueryException):
            self._begin_again(spark, error)
        else:
            raise error

    def _ended(self) -> None:
        if not self.stop.is_set():
            raise SparkEndedError(
                "Spark stopped under the driver: its process received a signal, it ran out of memory (raise "
                "spark.driver.memory), or the cluster manager removed the application; start the driver again"
            )

    def _begin_again(self, spark: SparkSession, error: StreamingQueryException) -> None:
        self._failures += 1
        cause = self._cause_of(error)
        if self._failures >= _FAILURES_IN_A_ROW:
            raise QueryFailedError(
                f"the query failed {self._failures} times in a row, the last time with: {cause}; nothing was "
                "skipped: remove the cause (the stderr of driver or executor shows a crash or a lack of memory), and "
                "start the driver again"
            ) from error
        if self._failures > 1 and self._runner is not None and self._runner.failure is None:
            # No batch failed: it is Spark that cannot go on. Its checkpoint holds batch numbers only.
            query.set_checkpoint_aside(spark, self.config.tables.query_path, at_ms=now_ms())
        log.error("the query failed and is started again", extra={"cause": cause})

    def _cause_of(self, error: StreamingQueryException) -> str:
        failed_at = None if self._runner is None else self._runner.failed_at
        cause = query.cause_of(error)
        return cause if failed_at is None else f"{failed_at}: {cause}"

    def _wait_for_cluster(self, what: str, error: PipelineError) -> None:
        self.monitor.kafka_failed(f"{what}: {error}")
        self._read_nothing()
        wait_s = min(_LONGEST_WAIT_S, 2.0**self._waits)
        self._waits += 1
        log.warning(
            what,
            extra={
                "bootstrap_servers": self.config.kafka.properties["bootstrap.servers"],
                "error": str(error),
                "next_attempt_in_s": wait_s,
            },
        )
        self.stop.wait(wait_s)

    def _stream(self, spark: SparkSession) -> None:
        config = self.config
        admin, reason = admin_client(config)
        with explained("the Kafka cluster cannot be used", reason):
            found = cluster.inspect(
                admin,
                config.control,
                timeout_s=config.source.request_timeout_s,
                offsets=config.source.offsets,
                is_refused=self._is_topic_refused,
            )
        driver = self._take_over(spark, found, admin)
        source = build_source(
            driver.services, query=driver.replay.query, once=self.once, attempts=attempts_of_tasks(spark)
        )
        runner = self._runner = query.Runner(
            driver,
            stop=self.stop,
            on_batch=self._finished,
            on_outage=self._read_nothing,
            interval_s=source.interval_s,
            run_batch=self.run_batch,
            storage=self._storage,
        )
        running = query.start(spark, runner, checkpoint=config.tables.query_path, options=source.to_options())
        query.watch(
            running,
            runner,
            ExecutorWatch(spark, self.monitor),
            interval_s=config.trigger.interval_s,
            # Twice its own timeouts: a process that was stopped does not end by itself.
            hung_s=source.interval_s + source.choosing_s + 2 * CLIENT_S,
            is_outdated=self._outdated(found, admin),
        )

    def _outdated(self, found: cluster.Cluster, admin: AdminClient) -> Callable[[], bool]:
        """Whether the query should end to choose its source of commits again; only "auto" has a choice."""
        source = self.config.source
        if source.offsets != "auto":
            return lambda: False
        log.info(
            'source of commits chosen (source.offsets = "auto")',
            extra={"from": "the offsets topic" if found.reads_offsets else "coordinators"}
            | ({} if found.hidden is None else {"reason": found.hidden}),
        )
        return OffsetsWatch(
            admin,
            is_read=found.reads_offsets,
            timeout_s=source.request_timeout_s,
            is_refused=self._is_topic_refused,
        ).is_outdated

    def _take_over(self, spark: SparkSession, found: cluster.Cluster, admin: AdminClient) -> Driver:
        former_term = 0
        if self._owned is not None:
            former_term = self._owned[0].term
            # Restarted: this driver must not fence one that has taken over in the meantime.
            with suppress(TablesSetBackError):
                ownership.check(*self._owned)
        config, at_ms = as_found(self.config, found), now_ms()
        name = cluster_name(config, found)
        owner = ownership.owner_name(at_ms)
        tables = Store(
            config.tables.root,
            term=0,
            storage_options=resolve(config.tables.storage_options),
            on_answer=self.monitor.storage_answered,
        )
        filters = build_filters(config, name).identity
        store = ownership.acquire(tables, cluster=name, owner=owner, now_ms=at_ms, above=former_term)
        self._owned = store, owner
        self.monitor.owns(name, owner, store.term)
        self._heartbeat.begin(owner, store.term)
        upgrade(store, partial(self.monitor.step_ended, "upgrade of the tables"))
        recalled = recall(store, cluster_id=found.cluster_id, filters=filters)
        newest = recalled.keep(store)
        record_left_decisions(store)
        remembered = store.rows("plan_state", ["group_id", "state"])
        driver = Driver(
            spark=spark,
            services=build_services(
                config,
                found,
                admin,
                store=store,
                owner=owner,
                pokes=self._pokes,
                is_once=self.once,
                takes_over=self.takes_over,
            ),
            progress=ReadProgress(
                readiness=build_readiness(config, started_at_ms=at_ms),
                stamp=newest,
            ),
            replay=ReplayContext(is_new_cluster=recalled.is_new_cluster),
            memory=PlanMemory(states={row["group_id"]: row["state"] for row in remembered if row["state"]}),
            monitor=self.monitor,
        )
        # A reason not to publish is logged at the start, not with the first plan.
        connect(driver.services, driver.memory)
        return driver

    def _finished(self, report: query.Report) -> None:
        self._failures = self._refusals = self._waits = 0
        self._storage.batch_ended()
        self.on_batch(report)
        if report.has_read:
            self._read_on_at_s = time.monotonic()
        if self.once and (report.is_complete or report.is_overdue):
            self.is_incomplete = not report.is_complete
            self.stop.set()
        else:
            self._read_nothing()

    def _read_nothing(self) -> None:
        """End `once` when the last record was read a minute ago, whatever has kept it from more."""
        now_s = time.monotonic()
        if self._read_on_at_s is None:
            self._read_on_at_s = now_s
        if self.once and now_s - self._read_on_at_s >= _IN_VAIN_S:
            log.error(
                "no more records could be read for a minute, so --once ends incomplete (exit status 3)",
                extra={
                    "hint": "the log lines above give the cause; groups marked provisional are not fully read"
                },
            )
            self.is_incomplete = True
            self.stop.set()


def _jars() -> tuple[Path, ...]:
    # Under spark-submit the JVM is there already, and its --packages or --jars have brought them.
    if is_submitted():
        return ()
    # Spark's own words for a missing Java name neither Java nor what to do.
    find_java()
    return resolve_for_spark(PACKAGES, report=log.info)
