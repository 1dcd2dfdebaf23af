"""Services: what the steps of a batch work with; made at each start, the same until the next."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from assignor.protocol.migration import Migration
from pipeline.config.model import Config
from pipeline.decode.filters import Filters
from pipeline.kafka.confirmations import Confirmations
from pipeline.kafka.ghosts import GhostHunt
from pipeline.kafka.topic_configs import TopicConfigs
from pipeline.publish.outbox import Publisher
from pipeline.tables.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The configuration, the tables, the cluster."""

    config: Config
    is_once: bool = False
    """Plan with the first batch by which the offsets topic has been read, whatever the interval says."""
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
    configs: TopicConfigs
    """Of the topics that the job reads, and of the control topic."""
    migration: Callable[[], Migration] = lambda: "unknown"
    """Whether the brokers would migrate a classic group online, now or a moment ago."""
    retention: Callable[[Iterable[str]], Mapping[str, int]] = lambda _topics: {}
    """How long topics keep their records, in ms, where that is known and time alone decides."""
    ghosts: GhostHunt
    confirmations: Confirmations
    publisher: Publisher
