"""The step of groups: when their table is written, not in every batch but never too seldom, and what it holds then."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.run.batch.confirmation import _stored_groups
from pipeline.run.batch.groups import store_group_history, store_groups
from tests.support.groups.consumer_group_records import (
    current,
    epoch,
    events,
    metadata,
    target_epoch,
    topic_names,
)
from tests.support.job.batches import stamp_of
from tests.support.job.frames import arrow
from tests.support.job.step_batches import StepBatches, offsets

WRITTEN = {"consumer_groups"}
STEPS = (store_group_history, store_groups)


class Groups(StepBatches):
    """As far as the table of groups is concerned."""

    def run(self, *events: dict[str, Any], **batch: Any) -> set[str]:
        return super().run(*events, **batch) - {"group_history"}


@pytest.fixture
def batches(tmp_path: Path) -> StepBatches:
    return Groups(str(tmp_path), *STEPS)


def group(group_id: str, partition: int, position: int = 1, **fields: Any) -> dict[str, Any]:
    """A record of a classic group in this partition of the offsets topic."""
    return {
        "row_kind": "group",
        "group_id": group_id,
        "group_type": "classic",
        "members": [],
        "offsets_partition": partition,
        "position": position,
        **fields,
    }


def test_records_of_groups_are_folded_into_those_that_are_known(batches: StepBatches) -> None:
    assert batches.run(group("a", 3, generation=1), group("b", 7)) == WRITTEN
    assert batches.run() == set()
    gone = {"row_kind": "group_tombstone", "group_type": "classic", "group_id": "b", "position": 2}
    assert batches.run(group("a", 3, 2, generation=5), {**gone, "offsets_partition": 7}) == WRITTEN

    rows = batches.store.rows("consumer_groups", ["cluster", "group_id", "generation", "batch_id"])
    assert rows == [{"cluster": "local", "group_id": "a", "generation": 5, "batch_id": 2}]


def test_groups_that_a_reading_from_the_start_has_not_met_go_when_it_has_come_to_the_end(
    batches: StepBatches,
) -> None:
    batches.run(group("a", 3), group("b", 3), group("c", 7))

    assert batches.run(group("a", 3), reread=offsets(3), behind=(3, 7)) == WRITTEN
    assert batches.values("consumer_groups", "group_id") == ["a", "b", "c"]

    assert batches.run(behind=(7,)) == WRITTEN
    assert batches.values("consumer_groups", "group_id") == ["a", "c"]
    assert batches.run(behind=(7,)) == set()


def test_partition_read_again_to_its_end_by_one_batch_drops_what_is_not_in_it(batches: StepBatches) -> None:
    batches.run(group("a", 3), group("b", 7))

    # Not a single record of a group is needed for that.
    assert batches.run(reread=offsets(3)) == WRITTEN

    assert batches.values("consumer_groups", "group_id") == ["b"]


def test_first_batch_after_a_start_writes_what_is_stored_but_no_empty_table(batches: StepBatches) -> None:
    assert batches.run(reread=offsets(3)) == set()
    batches.run(group("a", 3))

    batches.restart()

    assert batches.run() == WRITTEN
    assert batches.values("consumer_groups", "group_id") == ["a"]


def test_batch_left_half_done_does_not_fold_the_groups_that_it_has_written(batches: StepBatches) -> None:
    batches.run(group("a", 3))

    assert batches.run(group("b", 3), written={"topic_offsets", "consumer_groups"}) == set()

    assert batches.values("consumer_groups", "group_id") == ["a"]


def test_group_of_the_new_protocol_is_asked_about_when_its_record_was_cut_off(batches: StepBatches) -> None:
    batches.run(group("new", 3, group_type="consumer"), group("shared", 3, group_type="share"), group("a", 7))
    assert set(_stored_groups(batches.store)) == {"a"}

    batches.run(reread=offsets(3), beheaded=offsets(3))

    assert batches.values("consumer_groups", "group_id") == ["a", "new", "shared"]
    assert set(_stored_groups(batches.store)) == {"a", "new"}


def test_topic_of_a_kip_848_group_is_named_as_soon_as_the_brokers_have_named_it(batches: StepBatches) -> None:
    records = events(metadata("a", "t"), epoch(1), target_epoch(1), current("a", 1, {"t": [0, 1]}))

    assert batches.run(*records, counted={"group": len(records)}) == WRITTEN
    assert batches.run() == set()
    named = {"topic": "t", "partition": 3, "topic_id": next(iter(topic_names("t")))}
    batches.store.write("topic_offsets", arrow("topic_offsets", named), stamp_of())

    assert batches.run() == WRITTEN
    (row,) = batches.store.arrow("consumer_groups").to_pylist(maps_as_pydicts="strict")
    assert (row["state"], row["generation"], row["group_position"]) == ("Stable", 1, 3)
    assert [(one["assigned"], one["error"]) for one in row["members"]] == [({"t": [0, 1]}, None)]
    assert batches.run() == set()


def test_kip_848_group_is_the_same_after_a_start(batches: StepBatches) -> None:
    batches.run(*events(metadata("a", "t"), epoch(1)), counted={"group": 2})
    batches.restart()

    batches.run(*events(metadata("b", "t"), target_epoch(1), first=2), counted={"group": 2})

    (row,) = batches.store.arrow("consumer_groups").to_pylist(maps_as_pydicts="strict")
    assert [one["member_id"] for one in row["members"]] == ["a", "b"]
