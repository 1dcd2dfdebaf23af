"""What the steps of a batch share: the driver, which lasts, and the batch on its way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assignor.protocol.migration import Migration
from pipeline.config.model import Config
from pipeline.decode.step import Filters, Summary
from pipeline.kafka.ghosts import GhostHunt
from pipeline.kafka.positions import Answer, Intake, PartitionKey, Position
from pipeline.kafka.topic_configs import TopicConfigs
from pipeline.planning.memory import PlanMemory
from pipeline.publish.outbox import Publisher
from pipeline.run.readiness import Gate
from pipeline.run.replay import ReplayContext
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store


@dataclass(slots=True, kw_only=True)
class Driver:
    """What lasts from batch to batch."""

    config: Config
    cluster: str
    store: Store
    owner: str
    gate: Gate
    ask_ends: Callable[[], Mapping[PartitionKey, Answer]]
    """What the leaders of all partitions that are read say; BrokerUnavailableError when nobody answers."""
    filters: Filters
    publisher: Publisher
    ghosts: GhostHunt
    configs: TopicConfigs
    """Of the topics that the job reads, and of the control topic."""
    cluster_id: str = ""
    """Kafka's own."""
    migration: Callable[[], Migration] = lambda: "unknown"
    """Whether the brokers would migrate a classic group online, now or a moment ago."""
    replay: ReplayContext = field(default_factory=ReplayContext)
    positions: dict[PartitionKey, Position] = field(default_factory=dict)
    """How far each partition was read by the last batch."""
    distrusted: dict[PartitionKey, str] = field(default_factory=dict)
    """Partitions to be read again from their start, and why."""
    followed: frozenset[PartitionKey] = frozenset()
    """Partitions whose leader answered the last batch, so that nothing was missed since."""
    versions: dict[str, int] = field(default_factory=dict)
    """Of latest tables, as far as they are known."""
    away_said_ms: int = 0
    """When the log was told last that no broker answers."""
    memory: PlanMemory = field(default_factory=PlanMemory)
    has_acks: bool = False
    """Whether there is anything in the table."""
    has_orders: bool = False
    """The same."""
    once: bool = False
    """Plan with the first batch by which the offsets topic has been read, whatever the interval says."""
    behind: tuple[int, ...] = ()
    """Partitions of the offsets topic that had not been read to their end by the last batch."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch on its way through the steps."""

    driver: Driver
    rows: DataFrame
    batch_id: int
    at_ms: int = 0
    """Its clock."""
    intake: Intake = field(default_factory=Intake)
    """What it reads."""
    answers: Mapping[PartitionKey, Answer] = field(default_factory=dict)
    """What the leaders said before it read; empty in a replay."""
    stamp: Stamp | None = None
    decoded: DataFrame | None = None
    summary: Summary = field(default_factory=Summary)
    written: set[str] = field(default_factory=set)
    """Tables that hold the batch: by this run, or by one before it that was cut short."""
    is_replay: bool = False
    """It ran before, up to some step: what it reads, its clock and who is behind are those of that time."""
    is_skipped: bool = False
    """No broker answers: nothing is known that the tables do not say already."""
    ghosts: tuple[str, ...] = ()
    """Groups that the brokers no longer know."""
    published: int = 0

    @property
    def clock(self) -> Stamp:
        """The batch's stamp, once `settle` has made it."""
        if self.stamp is None:
            raise AssertionError("settle comes first")
        return self.stamp

    def reread(self, topic: str) -> tuple[int, ...]:
        """Partitions of the topic that the batch began to read from their log start."""
        return tuple(sorted(number for name, number in self.clock.reread if name == topic))

    def kind(self, *kinds: str) -> DataFrame:
        """Decoded rows of these kinds."""
        if self.decoded is None:
            raise AssertionError("decode comes first")
        return self.decoded.where(F.col("row_kind").isin(*kinds))
