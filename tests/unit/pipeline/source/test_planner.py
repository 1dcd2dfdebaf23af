"""What the source chooses: when, from which state of the tables, and what it tells when it cannot."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from pipeline.errors import (
    AccessRefusedError,
    BrokerUnavailableError,
    PipelineError,
    StoreError,
    TopicMissingError,
)
from pipeline.kafka.positions import Answer, End, PartitionKey, Position
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.assembly import build_source
from pipeline.source.offset import SourceOffset, from_json, state_of
from pipeline.source.pace import Pace
from pipeline.source.planner import Planner
from pipeline.tables.stamp import Stamp
from tests.support.job.batches import idle_driver, stamp_of

KEY = (OFFSETS_TOPIC, 0)
NOW_MS = 1_700_000_000_000


class World:
    """Tables and brokers that a test changes.

    Attributes:
        now_s: Time.
        answer: Of the log of the offsets topic.
        others: Answers of other logs.
        stamps: By table.
        asked: How often the brokers were.
    """

    def __init__(self, *, interval_s: float = 30, **settings: Any) -> None:
        self.now_s = 0.0
        self.answer: Answer | PipelineError = End(log_start=0, stable=10, high=10)
        self.others: dict[PartitionKey, Answer] = {}
        self.stamps: dict[str, Stamp | Exception] = {}
        self.asked = 0
        of_driver = build_source(idle_driver().services, query="q", once=False, attempts=4)
        self.planner = Planner(
            replace(of_driver, **settings),
            ask=self._ask,
            stamps=self._stamp,
            pace=Pace(interval_s, clock_s=lambda: self.now_s),
            now_ms=lambda: NOW_MS + round(self.now_s * 1000),
        )

    def chosen(self) -> SourceOffset:
        """What is chosen now."""
        offset = self.planner.next_offset()
        assert offset is not None
        return offset

    def read(self, offset: SourceOffset, *, up_to: int) -> None:
        """The batch is done, and has read so far."""
        at_ms = NOW_MS + round(self.now_s * 1000)
        stamp = stamp_of(at_ms=at_ms, tick=offset.tick, positions={KEY: Position(up_to)}, followed=(KEY,))
        self.stamps["partition_lag"] = stamp

    def _ask(self) -> Mapping[PartitionKey, Answer]:
        self.asked += 1
        if isinstance(self.answer, PipelineError):
            raise self.answer
        return {KEY: self.answer, **self.others}

    def _stamp(self, name: str) -> Stamp | None:
        found = self.stamps.get(name)
        if isinstance(found, Exception):
            raise found
        return found


def test_first_batch_is_due_at_once_and_the_next_one_an_interval_later() -> None:
    world = World()
    first = world.chosen()
    world.read(first, up_to=10)

    world.now_s = 29.9
    assert world.planner.next_offset() is None
    assert world.asked == 1

    world.now_s = 30.0
    assert world.chosen().tick > first.tick


def test_span_begins_where_the_tables_say_that_reading_has_come_to_and_not_where_the_last_one_ends() -> None:
    world = World()
    first = world.chosen()
    world.read(first, up_to=4)
    world.now_s = 30.0

    (span,) = world.chosen().intake.spans

    assert [(one.start, one.end) for one in (*first.intake.spans, span)] == [(0, 10), (4, 10)]


def test_batch_is_due_at_once_while_records_are_left_and_some_were_read() -> None:
    world = World(most_records=4)
    first = world.chosen()
    assert first.intake.left == 6
    world.read(first, up_to=4)

    second = world.chosen()

    assert [(span.start, span.end) for span in second.intake.spans] == [(4, 8)]


def test_backlog_of_an_acks_topic_is_read_in_pieces() -> None:
    world = World()
    world.others = {("lagwise.acks", 0): End(log_start=0, stable=135_000, high=135_000)}

    intake = world.chosen().intake

    assert {span.topic: span.end for span in intake.spans} == {OFFSETS_TOPIC: 10, "lagwise.acks": 50_000}
    assert intake.left == 85_000


@pytest.mark.parametrize("is_stored", [True, False], ids=["nothing was read", "nothing was stored"])
def test_batch_that_came_to_nothing_is_not_tried_again_before_its_time(is_stored: bool) -> None:
    world = World(most_records=4)
    first = world.chosen()
    if is_stored:
        world.read(first, up_to=0)

    assert [world.planner.next_offset() for _ in range(3)] == [None] * 3


@pytest.mark.parametrize(
    "error", [BrokerUnavailableError("away"), TopicMissingError("gone"), AccessRefusedError("not you")]
)
def test_what_keeps_it_from_choosing_is_told_to_the_driver(error: PipelineError) -> None:
    world = World()
    world.answer = error

    offset = from_json(world.chosen().to_json())

    assert offset is not None
    assert offset.failure == (type(error).__name__, str(error))
    assert offset.intake.spans == ()


@pytest.mark.parametrize("error", [StoreError("a table\n is gone"), OSError("disk")])
def test_tables_that_cannot_be_read_are_told_as_an_outage_of_the_storage(error: Exception) -> None:
    world = World()
    world.stamps["partition_lag"] = error

    offset = world.chosen()

    assert offset.failure == ("StorageUnavailableError", " ".join(str(error).split()))
    assert world.asked == 0


def test_tables_that_cannot_be_read_between_two_batches_are_told_with_the_next_one() -> None:
    world = World(most_records=4)
    world.chosen()
    world.stamps["partition_lag"] = OSError("disk")

    assert world.planner.next_offset() is None
    world.now_s = 30
    assert world.chosen().failure == ("StorageUnavailableError", "disk")


def test_offset_names_the_state_of_the_tables_from_which_it_was_made() -> None:
    world = World()
    first = world.chosen()
    world.read(first, up_to=10)
    world.now_s = 30.0
    second = world.chosen()

    assert (first.made_from, second.made_from) == ("empty", str(NOW_MS))
    doubted = stamp_of(at_ms=NOW_MS, positions={})
    assert state_of(doubted) not in {
        state_of(None),
        state_of(stamp_of(at_ms=NOW_MS, positions={KEY: Position(1)})),
    }


def test_ticks_rise_though_the_clock_goes_back() -> None:
    world = World(interval_s=0)
    ticks = []
    for world.now_s in (5.0, 3.0, 3.0, 9.0):
        world.planner._pace.hurry()
        ticks.append(world.chosen().tick)

    assert ticks == sorted(set(ticks))


def test_stored_beginning_of_a_batch_is_looked_for_only_where_another_process_has_chosen_it() -> None:
    world = World()
    offset = world.chosen()
    begun = stamp_of(tick=offset.tick)
    world.stamps["topic_offsets"] = begun
    other = World()
    other.stamps["topic_offsets"] = begun

    assert world.planner.begun(offset) is None
    assert other.planner.begun(offset) == begun
    assert other.planner.begun(replace(offset, tick=offset.tick + 1)) is None


def test_trust_in_what_was_followed_holds_only_for_the_query_that_has_followed() -> None:
    # Nobody knows how long tombstones are kept; the batch before ended an hour ago.
    kept = {"tombstones_kept_ms": {OFFSETS_TOPIC: None}}
    world, other = World(**kept), World(**kept)
    world.read(world.chosen(), up_to=10)
    other.stamps = dict(world.stamps)
    chosen: list[Callable[[], SourceOffset]] = [world.chosen, other.chosen]
    for one in (world, other):
        one.now_s = 3600.0

    assert [len(choose().intake.reread) for choose in chosen] == [0, 1]


def test_group_is_left_out_while_it_is_quiet_and_its_answer_is_younger_than_the_age_at_the_next_batch() -> (
    None
):
    world = World(interval_s=30, group_max_age_s=120)
    minute = 60_000
    times = {
        "changed lately": (NOW_MS, NOW_MS - minute),
        "quiet": (NOW_MS, NOW_MS - 2 * minute),
        "quiet and too old by the next batch": (NOW_MS - 91_000, NOW_MS - 9 * minute),
        "quiet and just young enough": (NOW_MS - 90_000, NOW_MS - 9 * minute),
    }
    world.stamps["partition_lag"] = stamp_of(asked=times)

    assert world.planner.quiet(NOW_MS) == {"quiet", "quiet and just young enough"}


def test_group_is_asked_for_whose_answer_was_dated_by_a_clock_that_was_ahead() -> None:
    world = World(interval_s=30, group_max_age_s=120)
    world.stamps["partition_lag"] = stamp_of(asked={"g": (NOW_MS + 1, NOW_MS - 600_000)})

    assert world.planner.quiet(NOW_MS) == set()
    assert world.planner.quiet(NOW_MS + 1) == {"g"}


def test_no_group_is_left_out_without_an_age_or_before_the_first_batch() -> None:
    world = World(interval_s=30, group_max_age_s=0)
    assert world.planner.quiet(NOW_MS) == set()

    world.stamps["partition_lag"] = stamp_of(asked={"g": (NOW_MS, NOW_MS - 99_000)})
    assert world.planner.quiet(NOW_MS) == set()
