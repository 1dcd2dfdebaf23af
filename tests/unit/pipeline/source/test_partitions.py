"""A batch in parts: what each task reads."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.kafka.positions import End, Intake, Span
from pipeline.kafka.sources.groups import listing
from pipeline.kafka.sources.groups.settings import ListedGroup, Listing
from pipeline.kafka.sources.log_offsets import ask
from pipeline.kafka.sources.log_offsets.settings import Share
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.assembly import build_source
from pipeline.source.offset import SourceOffset, from_json
from pipeline.source.partitions import Part, parts_of
from pipeline.source.planner import Planner
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import idle_driver, stamp_of
from tests.support.job.frames import arrow

SETTINGS = build_source(idle_driver().services, query="q", once=False, attempts=4)
ASKED = Share(carries_listing=True)


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks there were for log ends, each time that they were dealt out."""
    tasks: list[int] = []

    def shares(_settings: Any, *, tasks: int, into: list[int] = tasks) -> list[Share]:
        into.append(tasks)
        return [ASKED]

    monkeypatch.setattr(ask, "shares", shares)
    return tasks


def span(partition: int, records: int, *, start: int = 0) -> Span:
    return Span(topic=OFFSETS_TOPIC, partition=partition, start=start, end=start + records)


def offset(*spans: Span, **fields: Any) -> SourceOffset:
    ends = {one.key: End(log_start=0, stable=one.end, high=one.end) for one in spans}
    return SourceOffset(tick=7, made_from="empty", intake=Intake(spans=spans), answers=ends, **fields)


def parts(of: SourceOffset | dict[str, Any], **stamps: Stamp) -> list[Part]:
    planner = Planner(SETTINGS, ask=dict, stamps=stamps.get)
    return parts_of(of.to_json() if isinstance(of, SourceOffset) else of, planner, SETTINGS)


def test_small_batch_is_one_task() -> None:
    (part,) = parts(offset(span(0, 5), span(1, 9)), partition_lag=stamp_of(parallelism=8))

    assert {one.key for one in part.spans} == {(OFFSETS_TOPIC, 0), (OFFSETS_TOPIC, 1)}
    assert part.share == ASKED


def test_batch_of_many_records_has_a_task_for_log_ends_beside_those_that_read() -> None:
    first, second = parts(offset(span(0, 40_000)), partition_lag=stamp_of(parallelism=8))

    assert [one.key for one in first.spans] == [(OFFSETS_TOPIC, 0)]
    assert (first.share, second) == (None, Part(share=ASKED))


def test_batch_of_many_partitions_has_a_task_for_log_ends_beside_the_one_that_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = Share(topics=(("t", tuple(range(2_000))),), carries_listing=True)
    monkeypatch.setattr(ask, "shares", lambda _settings, *, tasks: [many][:tasks])

    first, second = parts(offset(span(0, 5)), partition_lag=stamp_of(parallelism=8))

    assert (first.share, second) == (None, Part(share=many))


def test_large_batch_is_as_many_tasks_as_spark_runs_at_once_and_every_span_is_in_one() -> None:
    spans = [span(number, 40_000) for number in range(10)]

    found = parts(offset(*spans), partition_lag=stamp_of(parallelism=4))

    assert [len(part.spans) for part in found] == [3, 3, 2, 2, 0]
    assert sorted(one.partition for part in found for one in part.spans) == list(range(10))


def test_first_part_alone_has_the_offset() -> None:
    of = offset(*(span(number, 60_000) for number in range(3)))

    found = parts(of, partition_lag=stamp_of(parallelism=4))

    assert [part.offset for part in found] == [of.to_json(), None, None, None]


def test_batch_that_runs_again_reads_at_most_what_it_has_read_and_asks_nobody(asked: list[int]) -> None:
    of = offset(span(0, 50), span(1, 9))
    short = stamp_of(tick=of.tick, spans=(span(0, 20), span(1, 0)))

    (part,) = parts(of, topic_offsets=short)

    assert part.spans == (span(0, 20),)
    assert asked == []


@pytest.mark.parametrize(
    "of",
    [offset(failure=("BrokerUnavailableError", "away")), {"offset": 3, "timestamp": 12}, {}],
    ids=["failure", "another source's", "none"],
)
def test_batch_of_which_nothing_is_known_has_one_part_that_says_so(
    of: SourceOffset | dict[str, Any], asked: list[int]
) -> None:
    (part,) = parts(of)

    assert part.offset == (of.to_json() if isinstance(of, SourceOffset) else of)
    assert (part.spans, part.share, asked) == ((), None, [])


def test_batch_of_which_the_tables_cannot_say_whether_it_ran_reads_nothing_and_says_why(
    asked: list[int],
) -> None:
    def fails(_table: str) -> None:
        raise OSError("Stale file handle")

    planner = Planner(SETTINGS, ask=dict, stamps=fails)

    (part,) = parts_of(offset(span(0, 50)).to_json(), planner, SETTINGS)

    told = from_json(part.offset or {})
    assert told is not None
    assert told.failure == ("StorageUnavailableError", "Stale file handle")
    assert (part.spans, part.share, asked) == ((), None, [])


ASKING = replace(SETTINGS, most_group_requests=50)
GROUPS = Listing(groups=tuple(ListedGroup(f"g{number:03}", "classic", None) for number in range(150)))


def asking(
    monkeypatch: pytest.MonkeyPatch,
    of: SourceOffset,
    *,
    listed: Listing = GROUPS,
    root: str = ASKING.root,
    **stamps: Stamp,
) -> list[Part]:
    """The parts where coordinators are asked; no group is marked."""
    monkeypatch.setattr(listing, "listed", lambda _settings: listed)
    planner = Planner(replace(ASKING, root=root), ask=dict, stamps=stamps.get, doubtful=dict)
    return parts_of(of.to_json(), planner, ASKING)


def test_tasks_that_ask_for_groups_read_no_records_and_ask_for_log_ends_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, first, second = asking(monkeypatch, offset(span(0, 5)), partition_lag=stamp_of(parallelism=8))

    assert ([one.key for one in reading.spans], reading.groups, reading.share) == (
        [(OFFSETS_TOPIC, 0)],
        None,
        None,
    )
    assert (first.listing, first.share, second.listing, second.share) == (GROUPS, ASKED, None, None)
    assert first.groups is not None
    assert second.groups is not None
    assert sorted((*first.groups.groups, *second.groups.groups), key=lambda one: one.group_id) == [
        *GROUPS.groups
    ]
    assert first.groups.at_once + second.groups.at_once == 50


def test_batch_that_runs_again_asks_for_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = stamp_of(tick=7, spans=(span(0, 5),))

    (part,) = asking(monkeypatch, offset(span(0, 9)), topic_offsets=begun)

    assert (part.groups, part.listing, part.share) == (None, None, None)


def test_quiet_groups_are_listed_and_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Planner, "quiet", lambda _self, tick: {"g000"} if tick == 7 else set())

    _, *askers = asking(monkeypatch, offset(span(0, 5)), partition_lag=stamp_of(parallelism=8))

    asked_for = {one.group_id for part in askers if part.groups for one in part.groups.groups}
    assert askers[0].listing == GROUPS
    assert asked_for == {one.group_id for one in GROUPS.groups} - {"g000"}


def test_while_the_list_is_incomplete_the_stored_groups_of_other_protocols_are_asked_about(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored = {"connect-x": "unknown", "streams-x": "unknown", "g000": "unknown", "gone": "classic"}
    rows = [{"group_id": name, "group_type": kind} for name, kind in stored.items()]
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    Store(str(tmp_path), term=1).write("consumer_groups", arrow("consumer_groups", *rows), stamp_of())
    partial = replace(GROUPS, groups=GROUPS.groups[:1], error="1 broker(s) did not list their groups")
    newest = stamp_of(parallelism=1)

    _, whole, *_ = asking(monkeypatch, offset(span(0, 5)), partition_lag=newest)
    _, part = asking(
        monkeypatch, offset(span(0, 5)), listed=partial, root=str(tmp_path), partition_lag=newest
    )

    others = tuple(ListedGroup(name, "unknown", None, is_other=True) for name in ("connect-x", "streams-x"))
    assert whole.listing == GROUPS
    assert part.listing == replace(partial, groups=(*partial.groups, *others))
    assert part.groups is not None
    assert {*part.groups.groups} == {*partial.groups, *others}


def test_while_the_list_is_incomplete_groups_that_it_showed_as_unreadable_are_still_not_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = ListedGroup("plain", "classic", "Stable")
    bytes_of, fatal = (
        ListedGroup("fatal", "classic", "Stable", is_readable=known) for known in (True, False)
    )
    monkeypatch.setattr(Planner, "of_unknown_type", lambda _self: ())
    planner = Planner(ASKING, ask=dict, stamps={}.get, doubtful=dict)

    told = []
    for found in (
        Listing(groups=(fatal, plain)),
        Listing(groups=(bytes_of, plain), error="1 broker(s) did not list their groups"),
        Listing(groups=(bytes_of, plain)),
    ):
        monkeypatch.setattr(listing, "listed", lambda _settings, found=found: found)
        _, part = parts_of(offset(span(0, 5)).to_json(), planner, ASKING)
        told.append(part.groups and {*part.groups.groups})

    assert told == [{fatal, plain}, {fatal, plain}, {bytes_of, plain}]
