"""Drivers and batches of which a test names only what it is about; nothing in them reaches Spark or Kafka."""

from collections.abc import Callable, Iterable
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from typing import Any

from pipeline.config.model import Config
from pipeline.decode.filters import ControlTopics, Filters
from pipeline.kafka.positions import Intake
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.opening import Read
from pipeline.run.batch.steps import Done
from pipeline.run.driver import Driver, ReadProgress, Services
from pipeline.run.query import Report, RunBatch, Runner
from pipeline.run.readiness import Readiness
from pipeline.run.replay import Past, ReplayContext
from pipeline.source.decoded import Decoded
from pipeline.source.summary import Summary
from pipeline.tables.stamp import Stamp
from tests.support.spark.read_frames import HereSpark

USABLE: Any = SimpleNamespace(until_usable=lambda _error=None: None, kafka_was_unavailable=lambda: None)
"""Storage that takes every write."""
CONTROL = Config().control
FILTERS = Filters(
    topics_include=(".*",),
    topics_exclude=(),
    groups_include=(".*",),
    groups_exclude=(),
    control_topics=ControlTopics(cluster="local", acks=CONTROL.acks_topic, commands=CONTROL.commands_topic),
)


class KnownConfigs:
    """Stands for `TopicConfigs`.

    Attributes:
        kept_ms: How long tombstones are kept by topic; a day where it is not named.
        asked: How often it was asked again.
    """

    def __init__(self, **kept_ms: int | None) -> None:
        self.kept_ms = kept_ms
        self.max_record_bytes = 1
        self.asked = 0

    def ask_again(self) -> None:
        """Know all that it is to know."""
        self.asked += 1

    def tombstones_kept_ms(self, topic: str) -> int | None:
        """As it was told."""
        return self.kept_ms.get(topic, 86_400_000)


def first() -> ReplayContext:
    """Of a driver that has not run a batch."""
    return ReplayContext(query="q")


def later(at_ms: int = 0) -> ReplayContext:
    """Of a driver whose newest batch had this clock."""
    return ReplayContext(query="q", at_ms=at_ms, is_first=False)


def deaf_session() -> Any:
    """A session that takes listeners, and does nothing."""
    return SimpleNamespace(streams=SimpleNamespace(addListener=lambda _listener: None))


def idle_driver(**fields: Any) -> Driver:
    """A driver that has not run a batch.

    Args:
        fields: Parts of `Driver`, or fields of its services or progress, whichever has one of that name; or
            `positions`, up to which the batch before has read.
    """
    positions = fields.pop("positions", None)
    if positions is not None:
        fields["stamp"] = stamp_of(batch_id=4, at_ms=0, positions=dict(positions))
    readiness = Readiness(topic=OFFSETS_TOPIC, started_at_ms=0, deadline_s=60, tolerance_s=90)
    services = {
        "config": Config(),
        "cluster": "local",
        "store": None,
        "owner": "me",
        "topics": (OFFSETS_TOPIC, CONTROL.acks_topic, CONTROL.commands_topic),
        "filters": FILTERS,
        "publisher": None,
        "pokes": None,
        "ghosts": None,
        "confirmations": None,
        "configs": KnownConfigs(),
    }
    parts = {
        "services": Services(**{**services, **_taken(fields, Services)}),
        "progress": ReadProgress(**{"readiness": readiness, **_taken(fields, ReadProgress)}),
    }
    return Driver(**{"spark": HereSpark(), "replay": first(), **parts, **fields})


def _taken(given: dict[str, Any], part: type[Any]) -> dict[str, Any]:
    """The fields of the part, taken out of what is given."""
    return {one.name: given.pop(one.name) for one in dataclass_fields(part) if one.name in given}


def batch_of(driver: Driver, *, written: Iterable[str] = (), **fields: Any) -> Settled:
    """A batch that has read what is given, or nothing.

    Args:
        driver: Whose.
        written: Tables that hold it from a run before.
        fields: Of `Settled` or of `Read`.
    """
    read = {"offset": None, "decoded": Decoded(), "summary": Summary(), **_taken(fields, Read)}
    plain = {"read": Read(**read), "stamp": stamp_of(positions={}), "intake": Intake(), "answers": {}}
    batch = Settled(**{"driver": driver, **plain, **fields})
    held = dict.fromkeys(written, batch.stamp)
    return replace(batch, past=Past(stamps=held)) if held or driver.replay.is_first else batch


def done(batch: Settled, **fields: Any) -> Done:
    """The batch, when it went through all steps and has decided nothing."""
    plain = {"stamp": batch.stamp, "decisions": None, "published": 0, "seconds_by_step": {"begin": 0.0}}
    return Done(**{"batch": batch, **plain, **fields})


def stamp_of(**fields: Any) -> Stamp:
    """A stamp of the driver's query."""
    return Stamp(**{"batch_id": 5, "at_ms": 1, **fields})


def runner_of(
    run_batch: RunBatch,
    *,
    driver: Driver | None = None,
    stop: Event | None = None,
    on_batch: Callable[[Report], None] = lambda _report: None,
    on_outage: Callable[[], None] = lambda: None,
    interval_s: float = 0,
    storage: Any = USABLE,
) -> Runner:
    """A runner of such batches, of an idle driver unless it is given one."""
    return Runner(
        driver or idle_driver(),
        stop=stop or Event(),
        on_batch=on_batch,
        on_outage=on_outage,
        interval_s=interval_s,
        run_batch=run_batch,
        storage=storage,
    )
