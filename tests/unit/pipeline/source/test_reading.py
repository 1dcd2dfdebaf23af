"""What a task does with its part."""

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from assignor.protocol import commands
from assignor.protocol.acks import Refused, encode, encode_key
from assignor.protocol.commands import Orders
from pipeline.decode.rows import ARROW
from pipeline.kafka.positions import Span
from pipeline.kafka.sources.groups import ask as groups_ask
from pipeline.kafka.sources.groups.ask import Commit, GroupAnswer, Member
from pipeline.kafka.sources.groups.settings import GroupShare, GroupsSettings, ListedGroup, Listing
from pipeline.kafka.sources.log_offsets.ask import LOG_OFFSETS
from pipeline.kafka.sources.log_offsets.settings import Share
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.assembly import build_source
from pipeline.source import last_attempt, reading
from pipeline.source.partitions import Part
from pipeline.source.reading import rows_of_part
from tests.support.brokers.inject import commit_record
from tests.support.brokers.raw_records import raw
from tests.support.job.batches import idle_driver

SETTINGS = build_source(idle_driver().services, query="q", once=False, attempts=4)
SPANS = (Span(topic=OFFSETS_TOPIC, partition=3, start=0, end=9),)
SHARE = Share(topics=(("t", (0, 1)),), carries_listing=True, brokers=3)


@pytest.fixture(autouse=True)
def brokers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked for; two commits of a partition, and a log end, are to be had."""
    done: list[str] = []

    def consume(spans: list[Span], _settings: Any) -> Iterator[Any]:
        done.append("records")
        yield raw(
            *(
                (one.key, one.value)
                for one in (commit_record("g", "t", 0, 40), commit_record("g", "t", 0, 50))
            )
        )
        yield [
            {"topic": one.topic, "partition": one.partition, "position": 9, "leader_epoch": 1, "error": None}
            for one in spans
        ]

    def ask(_settings: Any, _share: Share) -> pa.RecordBatch:
        done.append("log ends")
        rows: list[dict[str, Any]] = [{"brokers": 3}, {"topic": "t", "partition": 0, "log_end_offset": 8}]
        return pa.RecordBatch.from_pylist(rows, schema=LOG_OFFSETS)

    monkeypatch.setattr(reading, "consume", consume)
    monkeypatch.setattr(reading, "ask", ask)
    return done


def rows(part: Part, *, attempt: int = 0, attempts: int = 4) -> list[dict[str, Any]]:
    context = SimpleNamespace(attemptNumber=lambda: attempt)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(last_attempt.TaskContext, "get", lambda: context)
        batches = list(rows_of_part(replace(SETTINGS, attempts=attempts), part))
    assert all(batch.schema == ARROW for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


def test_task_hands_on_the_offset_then_the_newest_commit_of_each_partition_and_how_far_it_came() -> None:
    found = rows(Part(offset={"tick": 5}, spans=SPANS))

    kinds = [row["row_kind"] for row in found]
    assert (kinds[0], {*kinds[1:]}) == ("intake", {"commit", "count", "read"})
    assert json.loads(found[0]["reason"]) == {"tick": 5}
    (commit,) = [row for row in found if row["row_kind"] == "commit"]
    assert (commit["position"], commit["committed_offset"]) == (1, 50)


def test_task_hands_on_the_newest_of_acknowledgements_with_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def consume(_spans: list[Span], _settings: Any) -> Iterator[Any]:
        head = {"cluster": "local", "group": "g", "generation": 1, "member": "m", "at_ms": 0}
        for epoch in (1, 2, 3):
            ack = Refused(**head, epoch=epoch, why="no")  # type: ignore[arg-type]
            records = raw((encode_key(ack), encode(ack)), topic="lagwise.acks", partition=0)
            yield records.set_column(2, "offset", pa.array([epoch], pa.int64()))

    monkeypatch.setattr(reading, "consume", consume)

    found = rows(Part(spans=(Span(topic="lagwise.acks", partition=0, start=0, end=4),)))

    assert [row["ack"]["epoch"] for row in found if row["row_kind"] == "ack"] == [3]
    assert [row["count"] for row in found if row["kind"] == "ack"] == [3]


@pytest.mark.parametrize("is_order_first", [True, False], ids=["an order first", "an ack first"])
def test_order_that_is_read_together_with_acknowledgements_is_handed_on(
    monkeypatch: pytest.MonkeyPatch, is_order_first: bool
) -> None:
    ack = Refused(cluster="local", group="g", generation=1, member="m", at_ms=0, epoch=9, why="no")
    order = Orders(cluster="local", group="g", paused=True, by="ann")
    acks = raw((encode_key(ack), encode(ack)), topic="lagwise.acks", partition=0)
    orders = raw((commands.encode_key(order), commands.encode(order)), topic="lagwise.commands", partition=0)
    together = pa.concat_batches([orders, acks] if is_order_first else [acks, orders])
    monkeypatch.setattr(reading, "consume", lambda _spans, _settings: iter([together]))

    found = rows(Part(spans=(Span(topic="lagwise.acks", partition=0, start=0, end=1),)))

    assert [row["ack"]["epoch"] for row in found if row["row_kind"] == "ack"] == [9]
    assert [row["orders"]["paused"] for row in found if row["row_kind"] == "orders"] == [True]


def test_task_hands_on_log_ends_and_the_listing() -> None:
    found = rows(Part(share=SHARE))

    assert [(row["row_kind"], row["topic"]) for row in found] == [("listing", None), ("log_offset", "t")]


@pytest.mark.parametrize("attempt", [1, 2])
def test_task_whose_process_has_died_asks_again(attempt: int, brokers: list[str]) -> None:
    rows(Part(spans=SPANS, share=SHARE), attempt=attempt)

    assert brokers == ["records", "log ends"]


def test_last_attempt_asks_nobody_and_says_why_nothing_is_known(brokers: list[str]) -> None:
    found = rows(Part(offset={"tick": 5}, spans=SPANS, share=SHARE), attempt=3)

    died = "the task that asks the brokers died 3 times"
    assert brokers == []
    (read,) = [row for row in found if row["row_kind"] == "read"]
    assert (read["position"], read["error"]) == (0, died)
    ends = [row for row in found if row["row_kind"] == "log_offset"]
    assert [(row["partition"], row["log_end_offset"], row["error"]) for row in ends] == [
        (0, None, died),
        (1, None, died),
    ]
    # The listing was made before.
    assert [row["error"] for row in found if row["row_kind"] == "listing"] == [None]


def test_only_attempt_asks(brokers: list[str]) -> None:
    rows(Part(spans=SPANS), attempts=1)

    assert brokers == ["records"]


GROUP = ListedGroup("g", "classic", "Stable")
GROUPS = GroupShare(groups=(GROUP, ListedGroup("h", "consumer", "Empty")), at_once=2)


@pytest.fixture
def coordinators(monkeypatch: pytest.MonkeyPatch, brokers: list[str]) -> None:
    """One group has committed in two topics, of the other nothing is known; log ends are told as they are asked for."""

    def ask(_settings: GroupsSettings, share: GroupShare) -> Iterator[GroupAnswer]:
        brokers.append("groups")
        first, second = share.groups
        member = Member("m", None, "c", "/h", {"t": [5]})
        commits = (Commit("t", 5, 40, None), Commit("gone", 0, 2, None))
        yield GroupAnswer(group=first, assignor="range", members=(member,), commits=commits)
        yield GroupAnswer(group=second, error="silent")

    def ask_ends(_settings: Any, share: Share) -> pa.RecordBatch:
        brokers.append(f"log ends of {share.topics}")
        told: list[dict[str, Any]] = [
            {"topic": topic, "partition": number, "error": "no such topic" if topic == "gone" else None}
            for topic, numbers in share.topics
            for number in numbers
        ]
        return pa.RecordBatch.from_pylist(told, schema=LOG_OFFSETS)

    monkeypatch.setattr(groups_ask, "ask", ask)
    monkeypatch.setattr(reading, "ask", ask_ends)


@pytest.mark.usefixtures("coordinators")
def test_task_asks_for_log_ends_of_what_was_committed_once_its_groups_have_answered(
    brokers: list[str],
) -> None:
    found = rows(Part(groups=GROUPS, share=Share(topics=(("t", (0,)),))))

    assert brokers == ["groups", "log ends of (('gone', (0,)), ('t', (0, 5)))"]
    # That a topic is gone is for the listing to say.
    ends = [(row["topic"], row["partition"]) for row in found if row["row_kind"] == "log_offset"]
    assert ends == [("t", 0), ("t", 5)]


@pytest.mark.usefixtures("coordinators")
def test_answers_become_rows_without_a_place_in_the_offsets_topic() -> None:
    found = rows(Part(listing=Listing(groups=(GROUP,), error="one is silent"), groups=GROUPS))

    said = {"group_listing", "listed", "asked"}
    assert [(row["row_kind"], row["group_id"], row["error"]) for row in found if row["row_kind"] in said] == [
        ("group_listing", None, "one is silent"),
        ("listed", "g", None),
        ("asked", "g", None),
        ("asked", "h", "silent"),
    ]
    commits = [row for row in found if row["row_kind"] == "commit"]
    assert [(row["topic"], row["partition"], row["committed_offset"]) for row in commits] == [
        ("t", 5, 40),
        ("gone", 0, 2),
    ]
    groups = [row for row in found if row["row_kind"] == "group"]
    assert [(row["group_id"], row["generation"], row["members"] is None) for row in groups] == [
        ("g", None, False),
        ("h", None, True),
    ]
    unplaced = [
        (row["offsets_partition"], row["position"], row["commit_timestamp_ms"]) for row in commits + groups
    ]
    assert {*unplaced} == {(None, None, None)}


@pytest.mark.usefixtures("coordinators")
@pytest.mark.parametrize(
    ("attempt", "attempts", "asked"),
    [
        (0, 4, "groups"),
        (1, 4, "groups after a crash"),
        (1, 3, "groups after a crash"),
        (0, 2, "groups"),
        (0, 1, "groups"),
    ],
)
def test_task_that_died_leaves_out_the_groups_that_may_have_ended_it(
    monkeypatch: pytest.MonkeyPatch, brokers: list[str], attempt: int, attempts: int, asked: str
) -> None:
    def after_crash(_settings: GroupsSettings, share: GroupShare) -> Iterator[GroupAnswer]:
        brokers.append("groups after a crash")
        return groups_ask.unanswered(share, "fatal")

    monkeypatch.setattr(groups_ask, "ask_after_crash", after_crash)

    rows(Part(groups=GROUPS, share=SHARE), attempt=attempt, attempts=attempts)

    assert brokers[0] == asked


@pytest.mark.usefixtures("coordinators")
def test_crashes_over_groups_cost_no_log_ends(brokers: list[str]) -> None:
    found = rows(Part(groups=GROUPS, share=Share(topics=(("t", (0,)),))), attempt=2)

    assert brokers == ["log ends of (('t', (0,)),)"]
    assert [row["error"] for row in found if row["row_kind"] == "log_offset"] == [None]
    died = "the task that asks the brokers died 2 times"
    assert [row["error"] for row in found if row["row_kind"] == "asked"] == [died, died]


@pytest.mark.usefixtures("coordinators")
def test_last_attempt_asks_for_no_group_and_says_why(brokers: list[str]) -> None:
    found = rows(Part(groups=GROUPS, share=SHARE), attempt=3)

    died = "the task that asks the brokers died 3 times"
    assert brokers == []
    assert [(row["group_id"], row["error"]) for row in found if row["row_kind"] == "asked"] == [
        ("g", died),
        ("h", died),
    ]
