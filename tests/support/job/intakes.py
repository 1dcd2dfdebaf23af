"""Batches from what the source has chosen to `settle`, in memory."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.kafka.positions import Answer, End, PartitionKey, Position
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch import intake
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.opening import Chosen, Read
from pipeline.run.driver import Driver
from pipeline.source.decoded import Decoded
from pipeline.source.offset import SourceOffset
from pipeline.source.summary import Reached, Summary
from tests.support.job.batches import CONTROL, idle_driver
from tests.support.job.chosen import Chooser

NOW_MS = 1_700_000_000_000
O0, O1 = (OFFSETS_TOPIC, 0), (OFFSETS_TOPIC, 1)
ACKS, COMMANDS = (CONTROL.acks_topic, 0), (CONTROL.commands_topic, 0)
KNOWN = {key: Position(10, 2, NOW_MS - 1_000) for key in (O0, O1, ACKS, COMMANDS)}
SILENT = "broker 1 does not answer"


def end(high: int, *, stable: int | None = None) -> End:
    return End(log_start=0, stable=high if stable is None else stable, high=high)


def answered(**others: Answer) -> dict[PartitionKey, Answer]:
    """Everything is read; keywords `o1`, `acks` … say what another answer is."""
    names = {"o0": O0, "o1": O1, "acks": ACKS, "commands": COMMANDS}
    return {key: others.get(name, end(10)) for name, key in names.items()}


def driver_at(positions: dict[PartitionKey, Position] = KNOWN, **fields: Any) -> Driver:
    return idle_driver(positions=dict(positions), cluster_id="c1", **fields)


_CHOOSERS: list[tuple[Driver, Chooser]] = []


def run(
    driver: Driver,
    answers: dict[PartitionKey, Answer],
    *,
    now_ms: int = NOW_MS,
    **reached: Reached,
) -> Settled:
    """A batch from what the source has chosen to `settle`; spans that are not named in `reached` are read whole."""
    if not any(one.progress is driver.progress for one, _ in _CHOOSERS):
        _CHOOSERS.append((driver, Chooser(driver)))
    (chooser,) = [chooser for one, chooser in _CHOOSERS if one.progress is driver.progress]
    return settled(driver, chosen(chooser.next_offset(answers, now_ms=now_ms), at_ms=now_ms), **reached)


def chosen(offset: SourceOffset, **fields: Any) -> Chosen:
    return Chosen(**{"batch_id": 5, "at_ms": NOW_MS, "clock_trouble": None, "offset": offset, **fields})


def settled(driver: Driver, what: Chosen, **reached: Reached) -> Settled:
    names = {O0: "o0", O1: "o1", ACKS: "acks", COMMANDS: "commands"}
    spans = what.offset.intake.spans if what.first_run is None else what.first_run.spans
    summary = Summary(
        reached={
            span.key: reached.get(names[span.key], Reached(Position(span.end, 3), None)) for span in spans
        }
    )
    batch = intake.settle(driver, Read(offset=what.offset, decoded=Decoded(), summary=summary), what)
    driver.progress.stamp = batch.stamp
    return batch


def positions_of(driver: Driver) -> Mapping[PartitionKey, Position]:
    """Up to where the newest batch has read."""
    assert driver.progress.stamp is not None
    return driver.progress.stamp.positions or {}


def distrust(driver: Driver, key: PartitionKey) -> None:
    """As a batch leaves a partition whose log was truncated."""
    assert driver.progress.stamp is not None
    driver.progress.stamp = replace(driver.progress.stamp, distrusted=((*key, "log truncated"),))


def stopped(offset: int, error: str | None) -> Reached:
    return Reached(Position(offset, 3), error)
