"""The state that lasts from batch to batch: session, services, and what one batch leaves for the next."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from assignor.protocol.migration import Migration
from pipeline.config.model import Config
from pipeline.decode.filters import Filters
from pipeline.kafka.confirmations import Confirmations
from pipeline.kafka.ghosts import GhostHunt
from pipeline.kafka.topic_configs import TopicConfigs
from pipeline.planning.memory import PlanMemory
from pipeline.publish.outbox import Publisher
from pipeline.publish.pokes import Pokes
from pipeline.run.health.monitor import Monitor
from pipeline.run.readiness import Readiness
from pipeline.run.replay import ReplayContext
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.maintenance import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Configuration, tables and cluster for the steps; created at each start, constant until the next."""

    config: Config
    is_once: bool = False
    """True to plan with the first batch that completes the offsets topic, whatever the interval."""
    cluster: str
    """Name of the cluster in tables and records."""
    cluster_id: str = ""
    """Kafka's own."""
    owner: str
    """Name of this driver as the owner of the tables."""
    store: Store
    filters: Filters
    topics: tuple[str, ...]
    """Logs that are read."""
    hidden: str | None = None
    """Why `source.offsets = "auto"` does not read the offsets topic; None if it does, or has no choice."""
    is_tried: bool = False
    """With "auto": brokers do not report the right to read the offsets topic, so a refusal shows that it is missing."""
    configs: TopicConfigs
    """Settings of the topics that the job reads, and of the control topic."""
    migration: Callable[[], Migration] = lambda: "unknown"
    """Whether brokers migrate classic groups online, now or a moment ago."""
    retention: Callable[[Iterable[str]], Mapping[str, int]] = lambda _topics: {}
    """Retention of topics in ms, if it is known and depends only on time."""
    ghosts: GhostHunt
    confirmations: Confirmations
    publisher: Publisher
    pokes: Pokes


@dataclass(slots=True, kw_only=True)
class ReadProgress:
    """State of the read partitions that one batch leaves for the next."""

    readiness: Readiness
    stamp: Stamp | None = None
    """Newest stamp of `partition_lag`, with the position in each partition."""
    has_doubtful: bool = True
    """Some row may be unconfirmed (`unconfirmed_reason`); it is known only when the tables were asked."""
    rereads_logged_ms: int = 0
    """Clock of the batch that logged last that tombstones are kept for too short a time."""
    outage_logged_ms: int = 0
    """Clock of the batch that logged last that no broker answers."""
    due_ms: float = 0
    """When the batch after the newest one is due."""
    clock_logged_s: float = -math.inf
    """When it was logged last that the clock is behind the tables, by a clock that only goes forward."""

    @property
    def behind(self) -> tuple[int, ...]:
        """Partitions of the offsets topic that had not been read to their end by the last batch."""
        return () if self.stamp is None else self.stamp.behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The parts of one driver."""

    spark: SparkSession
    services: Services
    progress: ReadProgress
    replay: ReplayContext = field(default_factory=ReplayContext)
    memory: PlanMemory = field(default_factory=PlanMemory)
    written_ms: dict[str, int | None] = field(default_factory=dict)
    """See `Store.written_ms`; of tables that have not been written since they were asked."""
    maintenance: Round = field(default_factory=Round)
    monitor: Monitor = field(default_factory=Monitor)

    @property
    def parallelism(self) -> int:
        """Tasks that Spark can run at once, as far as its executors are there by now."""
        return int(self.spark.sparkContext.defaultParallelism)

    def describe(self, batch_id: int, doing: str) -> None:
        """Name the jobs that follow, for Spark's page, the driver's health and error messages."""
        self.monitor.does(doing)
        self.spark.sparkContext.setJobDescription(f"batch {batch_id} · {doing}")
