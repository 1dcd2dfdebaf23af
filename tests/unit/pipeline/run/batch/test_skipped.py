"""Batches in which nobody answers: nothing is written, and the log says so now and then."""

import pytest

from pipeline.errors import AccessRefusedError, BrokerUnavailableError, PipelineError, TopicMissingError
from pipeline.kafka.positions import Answer, PartitionKey
from pipeline.run.batch.opening import choose_records
from pipeline.run.batch.steps import run
from pipeline.run.driver import Batch, Driver
from tests.support.batches import batch_of, idle_driver, later

SAID = "Kafka is away"


def driver_that_hears(error: PipelineError) -> Driver:
    def asked() -> dict[PartitionKey, Answer]:
        raise error

    return idle_driver(ask_ends=asked, replay=later(), behind=(3,))


def run_at(driver: Driver, at_s: int) -> list[str]:
    """The steps that ran after the one that asks."""
    later: list[str] = []

    def step(batch: Batch) -> None:
        later.append(str(batch.batch_id))

    run(batch_of(driver, at_ms=at_s * 1000), (choose_records, step))
    return later


def test_batch_without_any_answer_ends_there_and_leaves_the_driver_as_it_was() -> None:
    driver = driver_that_hears(BrokerUnavailableError("no answer"))

    assert run_at(driver, 100) == []
    assert driver.progress.behind == (3,)


def test_outage_is_said_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    driver = driver_that_hears(BrokerUnavailableError("no answer"))

    for at_s in (100, 130, 159, 160, 190):
        run_at(driver, at_s)

    said = [record for record in caplog.records if SAID in record.message]
    assert [record.__dict__["error"] for record in said] == ["no answer"] * 2
    assert (
        said[0].__dict__["bootstrap_servers"] == driver.services.config.kafka.properties["bootstrap.servers"]
    )


@pytest.mark.parametrize("error", [TopicMissingError("it is gone"), AccessRefusedError("not you")])
def test_what_another_batch_does_not_cure_ends_the_stream(error: PipelineError) -> None:
    with pytest.raises(type(error)):
        run_at(driver_that_hears(error), 100)
