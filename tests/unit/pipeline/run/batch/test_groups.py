"""When the table of groups is written: not in every batch, but never too seldom."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.decode.step import Summary
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch import groups
from pipeline.run.batch.groups import store_groups
from pipeline.run.batch.steps import run
from pipeline.run.driver import Batch, Driver
from tests.support.batches import batch_of, idle_driver, stamp_of


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each write of the table was told."""
    told: list[dict[str, Any]] = []

    def fold_groups(*_rows: Any, **settings: Any) -> dict[str, Any]:
        return settings

    monkeypatch.setattr(groups, "fold_groups", fold_groups)
    monkeypatch.setattr(groups, "stamped", lambda _batch, rows: rows)
    monkeypatch.setattr(groups, "write", lambda _batch, _name, settings: told.append(settings))
    monkeypatch.setattr(Batch, "kind", lambda _self, *_kinds: None)
    return told


@pytest.fixture
def driver() -> Driver:
    return idle_driver(store=SimpleNamespace(read=lambda _name: None, has_rows=lambda _name: True))


def run_batches(driver: Driver, *batches: dict[str, Any]) -> None:
    for batch_id, given in enumerate(batches):
        reread = [(OFFSETS_TOPIC, number) for number in given.get("reread", ())]
        one = batch_of(
            driver,
            batch_id=batch_id,
            stamp=stamp_of(batch_id=batch_id, behind=given.get("behind", ()), reread=tuple(reread)),
            summary=Summary(counts={"group": given.get("groups", 0)}),
            written=given.get("written", set()),
        )
        run(one, (store_groups,))


@pytest.mark.parametrize(
    ("batches", "times"),
    [
        pytest.param([{}], 1, id="first batch"),
        pytest.param([{}, {}, {}], 1, id="nothing new"),
        pytest.param([{}, {"groups": 1}, {}], 2, id="group records"),
        # Groups that are not in the log any more stay until then, and must not stay longer.
        pytest.param([{"behind": (3, 7)}, {"behind": (7,)}, {}, {}], 3, id="partitions read to their end"),
        # It may be read to its end by the same batch, without a single record of a group.
        pytest.param([{}, {"reread": (3,)}, {}], 2, id="partition read again"),
    ],
)
def test_groups_are_written_when_they_may_have_changed(
    written: list[dict[str, Any]], driver: Driver, batches: list[dict[str, Any]], times: int
) -> None:
    run_batches(driver, *batches)

    assert len(written) == times


def test_first_batch_over_an_empty_table_writes_it_only_for_records_of_groups(
    written: list[dict[str, Any]], driver: Driver
) -> None:
    driver.services.store.has_rows = lambda _name: False

    run_batches(driver, {}, {"reread": (3,)}, {"groups": 1})

    assert len(written) == 1


def test_groups_are_told_which_partitions_are_read_again_and_which_are_behind(
    written: list[dict[str, Any]], driver: Driver
) -> None:
    run_batches(driver, {"reread": (3, 1), "behind": (3,)})

    assert written == [{"reread": (1, 3), "behind": (3,)}]


def test_batch_left_half_done_writes_only_the_groups_that_it_has_not_written(
    written: list[dict[str, Any]], driver: Driver
) -> None:
    run_batches(driver, {"groups": 1, "written": {"topic_offsets", "consumer_groups"}})

    assert written == []
