"""What the steps of a batch share: the parts of the driver, which last, and the batch on its way."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pipeline.kafka.positions import Answer, Intake, PartitionKey
from pipeline.planning.memory import PlanMemory
from pipeline.run.health.monitor import Monitor
from pipeline.run.progress import ReadProgress
from pipeline.run.replay import Past, ReplayContext
from pipeline.run.services import Services
from pipeline.source.decoded import Decoded
from pipeline.source.summary import Summary
from pipeline.tables.stamp import Stamp


@dataclass(slots=True, kw_only=True)
class TableFacts:
    """What is known of the tables without asking them in each batch."""

    versions: dict[str, int] = field(default_factory=dict)
    """Of tables that were not written since they were asked."""
    topics: tuple[str, ...] = ()
    """Whose log offsets are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What lasts from batch to batch: session, services, and what one batch leaves for the next."""

    spark: SparkSession
    services: Services
    progress: ReadProgress
    replay: ReplayContext = field(default_factory=ReplayContext)
    memory: PlanMemory = field(default_factory=PlanMemory)
    tables: TableFacts = field(default_factory=TableFacts)
    monitor: Monitor = field(default_factory=Monitor)

    @property
    def parallelism(self) -> int:
        """Tasks that Spark can run at once, as far as its executors are there by now."""
        return int(self.spark.sparkContext.defaultParallelism)

    def describe(self, batch_id: int, doing: str) -> None:
        """Name the jobs that follow, for whoever looks at Spark."""
        self.spark.sparkContext.setJobDescription(f"batch {batch_id} · {doing}")


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch on its way through the steps."""

    driver: Driver
    batch_id: int
    frame: DataFrame | None = None
    """What Spark's source reads for it; collected once."""
    at_ms: int = 0
    """Its clock."""
    clock_trouble: str | None = None
    """Why the times that it measures are not right."""
    intake: Intake = field(default_factory=Intake)
    """What it reads."""
    answers: Mapping[PartitionKey, Answer] = field(default_factory=dict)
    """What the leaders answered before it read; empty in a replay."""
    stamp: Stamp | None = None
    decoded: Decoded = field(default_factory=Decoded)
    """What it has read."""
    summary: Summary = field(default_factory=Summary)
    past: Past | None = None
    """What the tables held when it began; None but for the first batch after a start."""
    written: set[str] = field(default_factory=set)
    """Tables that hold the batch: by this run, or by one before it that was cut short."""
    is_replay: bool = False
    """It ran before, up to some step: what it reads, its clock and who is behind are those of that time."""
    tick: int = 0
    """Its name in the source's offset."""
    passed_over: str | None = None
    """Why it must not write (`replay.why_passed_over`)."""
    outage: str | None = None
    """Why no broker answers: nothing is known that the tables do not say already, and the batch does nothing."""
    ghosts: tuple[str, ...] = ()
    """Groups that the brokers no longer know."""
    answered: pa.Table | None = None
    """What the brokers say of commits that could not be read, as rows of commits."""
    seconded: tuple[str, ...] = ()
    """Groups that could not be read, and of which the brokers say what is stored."""
    groups: pa.Table | None = None
    """The groups as they are now; None when they are as stored."""
    decisions: pa.Table | None = None
    """What it decided, as `plan_state` holds it; None when it decided nothing."""
    published: int = 0
    """Control records sent."""

    @property
    def services(self) -> Services:
        """The driver's."""
        return self.driver.services

    @property
    def is_skipped(self) -> bool:
        """Whether no broker answers, or it must not write."""
        return self.outage is not None or self.passed_over is not None

    @property
    def has_read(self) -> bool:
        """Whether reading came further in any log."""
        reached = self.summary.reached
        return any(
            span.key in reached and reached[span.key].position.offset > span.start
            for span in self.intake.spans
        )

    @property
    def is_full(self) -> bool:
        """Whether more was to be read than a batch may, and something was read."""
        return self.intake.left > 0 and self.has_read

    @property
    def clock(self) -> Stamp:
        """The batch's stamp, once `settle` has made it."""
        if self.stamp is None:
            raise AssertionError("settle comes first")
        return self.stamp

    def reread(self, topic: str) -> tuple[int, ...]:
        """Partitions of the topic that the batch began to read from their log start."""
        return tuple(sorted(number for name, number in self.clock.reread if name == topic))

    def beheaded(self, topic: str) -> tuple[int, ...]:
        """Those of them that have lost the beginning of their log."""
        return tuple(sorted(number for name, number in self.clock.beheaded if name == topic))
