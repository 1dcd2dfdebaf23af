"""What the steps of a batch share: the driver, which lasts, and the batch on its way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.config_model import Config
from pipeline.decode import Summary
from pipeline.gate import Gate
from pipeline.publish import Publisher
from pipeline.store import Stamp, Store


@dataclass(slots=True, kw_only=True)
class Driver:
    """What lasts from batch to batch."""

    config: Config
    cluster: str
    store: Store
    owner: str
    gate: Gate
    ask_ends: Callable[[], Mapping[int, int]]
    """High watermark of each partition of the offsets topic, now; KafkaException when there is no answer."""
    publisher: Publisher
    max_record_bytes: int
    """Of a control record; a larger plan is not made."""
    query_id: str = ""
    position: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How far the Kafka source was after the last batch: next offset by topic and partition number."""
    states: dict[str, str] = field(default_factory=dict)
    """What the newest decision about each group has left for the next."""
    plan_at_ms: int = 0
    """Clock of the batch that planned for all groups last."""
    decided_at_ms: int = 0
    """Clock of the batch that planned for any group last."""
    has_acks: bool = False
    """Whether there is anything in the table."""
    has_orders: bool = False
    """The same."""
    once: bool = False
    """Plan with the first batch by which the offsets topic has been read, whatever the interval says."""
    replayed: frozenset[str] = frozenset()
    """Tables that hold the present batch already; only the first batch after a start can have any."""
    foreign: frozenset[str] = frozenset()
    """Latest tables whose rows still come from another checkpoint."""
    started: bool = False
    behind: tuple[int, ...] = ()
    """Partitions of the offsets topic that had not been read to their end by the last batch."""
    at_ms: int = 0
    """Clock of the last batch."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch on its way through the steps."""

    driver: Driver
    rows: DataFrame
    batch_id: int
    stamp: Stamp | None = None
    decoded: DataFrame | None = None
    summary: Summary = field(default_factory=Summary)
    is_replay: bool = False
    """It ran before, up to some step: clock and gate are those of that time, and say nothing about now."""
    published: int = 0

    @property
    def clock(self) -> Stamp:
        """The batch's stamp, once `begin` has made it."""
        if self.stamp is None:
            raise AssertionError("begin comes first")
        return self.stamp

    def kind(self, *kinds: str) -> DataFrame:
        """Decoded rows of these kinds."""
        if self.decoded is None:
            raise AssertionError("decode comes first")
        return self.decoded.where(F.col("row_kind").isin(*kinds))
