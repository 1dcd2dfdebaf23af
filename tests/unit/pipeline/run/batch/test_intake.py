"""What a batch reads, and what its stamp says when it has."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.model import Config, SourceConfig
from pipeline.errors import OffsetsRefusedError
from pipeline.kafka.positions import REFUSED, TRUNCATED, Answer, End, Intake, Position, Span
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch.intake import Settled
from pipeline.run.replay import Past
from pipeline.source.offset import SourceOffset
from pipeline.source.summary import Reached
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import CONTROL, FILTERS, KnownConfigs, stamp_of
from tests.support.job.chosen import Chooser
from tests.support.job.frames import arrow
from tests.support.job.intakes import (
    ACKS,
    COMMANDS,
    KNOWN,
    NOW_MS,
    O0,
    O1,
    SILENT,
    answered,
    chosen,
    distrust,
    driver_at,
    end,
    positions_of,
    run,
    settled,
    stopped,
)


def test_batch_reads_what_is_new_and_its_stamp_says_so() -> None:
    driver = driver_at()

    batch = run(driver, answered(o1=end(30)))

    read = Span(topic=OFFSETS_TOPIC, partition=1, start=10, end=30, leader_epoch=2)
    assert batch.intake == Intake(spans=(read,))
    assert positions_of(driver) == {
        **{key: Position(10, 2, NOW_MS) for key in (O0, ACKS, COMMANDS)},
        O1: Position(30, 3, NOW_MS),
    }
    assert batch.stamp == Stamp(
        batch_id=5,
        at_ms=NOW_MS,
        cluster_id="c1",
        filters=FILTERS.identity,
        positions=positions_of(driver),
        spans=(read,),
        tick=NOW_MS,
        followed=(O0, O1, ACKS, COMMANDS) if ACKS < COMMANDS else (O0, O1, COMMANDS, ACKS),
        tombstones_kept_ms=dict.fromkeys(
            (OFFSETS_TOPIC, CONTROL.acks_topic, CONTROL.commands_topic), 86_400_000
        ),
    )


@pytest.mark.parametrize("is_tried", [True, False])
def test_topic_that_is_only_tried_ends_the_query_when_a_task_is_refused_it(is_tried: bool) -> None:
    driver = driver_at(is_tried=is_tried)
    refused = stopped(10, f"{REFUSED}: Topic authorization failed")

    def batch() -> Settled:
        return run(driver, answered(o1=end(30), acks=end(30)), acks=refused, o1=refused)

    if is_tried:
        with pytest.raises(OffsetsRefusedError, match=rf"partition 1 of {OFFSETS_TOPIC} .*authorization"):
            batch()
    else:
        # Where rights are reported, whoever chooses the source asks for them.
        assert batch().stamp.behind == (1,)


def test_refusal_of_another_topic_says_nothing_about_the_offsets_topic() -> None:
    batch = run(driver_at(is_tried=True), answered(acks=end(30)), acks=stopped(10, f"{REFUSED}: no"))

    assert REFUSED in str(batch.stamp.held)


def test_limits_come_from_the_configuration_and_from_each_topic() -> None:
    driver = driver_at(
        KNOWN | {key: Position(10, 2, NOW_MS - 60_001) for key in (ACKS, COMMANDS)},
        config=Config(source=SourceConfig(max_offsets_per_trigger=10)),
        configs=KnownConfigs(**{CONTROL.acks_topic: 60_000}),
    )

    batch = run(driver, answered(o1=end(110)))

    # The acks topic has 10 records to be read again, the partition of the offsets topic 100.
    assert [(span.key, span.start, span.end) for span in batch.intake.spans] == [(O1, 10, 20), (ACKS, 0, 1)]
    assert batch.reread(CONTROL.acks_topic) == (0,)


UNKNOWN_KEPT = {OFFSETS_TOPIC: None}
AWAY_MS = 91_000
"""A second longer than readiness tolerates."""


def test_what_is_unknown_of_topics_is_asked_for_again_with_each_batch() -> None:
    configs = KnownConfigs()
    driver = driver_at(configs=configs)

    for number in range(3):
        run(driver, answered(), now_ms=NOW_MS + number)

    assert configs.asked == 3


def test_partition_that_was_away_is_read_again_while_nobody_says_how_long_tombstones_are_kept() -> None:
    driver = driver_at({**KNOWN, O1: Position(10, 2, NOW_MS - AWAY_MS)}, configs=KnownConfigs(**UNKNOWN_KEPT))

    batch = run(driver, answered(o0=end(15)))

    assert list(batch.intake.reread) == [O1]
    assert "(delete.retention.ms) is unknown" in batch.intake.reread[O1]


def test_partition_that_is_followed_is_not_read_again_however_long_a_batch_takes() -> None:
    driver = driver_at(configs=KnownConfigs(**UNKNOWN_KEPT))
    # Read from its start, and too large for one batch.
    distrust(driver, O1)
    run(driver, answered(o1=end(30)), o1=stopped(5, None))

    batch = run(driver, answered(o1=end(30)), now_ms=NOW_MS + 10 * AWAY_MS)

    assert (batch.intake.reread, batch.intake.spans[0].start) == ({}, 5)


def test_partition_whose_leader_was_silent_for_long_is_read_again_while_nobody_says_how_long_tombstones_are_kept() -> (
    None
):
    driver = driver_at(configs=KnownConfigs(**UNKNOWN_KEPT))
    run(driver, answered())
    for number in range(1, 4):
        run(driver, answered(o1=SILENT), now_ms=NOW_MS + number * AWAY_MS // 2)

    batch = run(driver, answered(), now_ms=NOW_MS + 2 * AWAY_MS)

    assert list(batch.intake.reread) == [O1]


def test_leader_that_does_not_answer_leaves_its_partition_behind_and_is_named() -> None:
    batch = run(driver_at(), answered(o0=end(15), o1=SILENT))

    assert batch.stamp.behind == (1,)
    assert SILENT in (batch.stamp.reason or "")
    assert "partition 1" in (batch.stamp.reason or "")
    assert batch.stamp.held is None
    assert (positions_of(batch.driver)[O0].offset, positions_of(batch.driver)[O1]) == (
        15,
        KNOWN[O1],
    )


def test_leader_that_falls_silent_while_it_is_read_leaves_its_partition_behind_where_it_was_reached() -> None:
    batch = run(driver_at(), answered(o1=end(30)), o1=stopped(17, "its leader does not answer"))

    assert batch.stamp.behind == (1,)
    assert "its leader does not answer: partition 1" in (batch.stamp.reason or "")
    assert positions_of(batch.driver)[O1] == Position(17, 3, NOW_MS - 1_000)
    assert [(span.start, span.end) for span in batch.stamp.spans] == [(10, 17)]
    assert batch.stamp.distrusted == ()


def test_span_that_ends_early_without_an_error_goes_on_with_the_next_batch() -> None:
    # A leader that is new may not know yet how far its log counts.
    driver = driver_at()
    run(driver, answered())

    batch = run(driver, answered(o1=end(30)), o1=stopped(17, None))
    after = run(driver, answered(o1=end(30)), now_ms=NOW_MS + 1)

    assert (batch.stamp.behind, after.stamp.behind) == ((), ())
    assert [(span.start, span.end) for span in after.stamp.spans] == [(17, 30)]


def test_log_that_was_truncated_behind_the_position_is_read_again_by_the_next_batch() -> None:
    driver = driver_at()
    first = run(driver, answered(o1=end(30)), o1=stopped(10, f"{TRUNCATED}: epoch 1 ended at 8"))

    second = run(driver, answered(o1=end(30)), now_ms=NOW_MS + 1)
    third = run(driver, answered(o1=end(31)), now_ms=NOW_MS + 2)

    assert first.stamp.behind == (1,)
    assert [(span.start, span.end) for span in second.intake.spans] == [(0, 30)]
    assert second.reread(OFFSETS_TOPIC) == (1,)
    assert second.stamp.behind == ()
    assert (third.stamp.reread, third.stamp.spans[0].start) == ((), 30)


def test_partition_read_again_in_several_batches_is_behind_until_the_end_it_had_when_that_began() -> None:
    driver = driver_at(config=Config(source=SourceConfig(max_offsets_per_trigger=10)))
    run(driver, answered())
    # The log was made again, and is longer than it was: only its leader's epoch shows it.
    distrust(driver, O1)

    behind = [
        run(driver, answered(o1=end(high)), now_ms=NOW_MS + n).stamp.behind
        for n, high in enumerate((30, 40, 50))
    ]

    assert behind == [(1,), (1,), ()]


@pytest.mark.parametrize(
    ("answers", "reached", "why"),
    [
        pytest.param({"acks": SILENT}, {}, f"cannot be read: {SILENT}", id="acks without an answer"),
        pytest.param(
            {"commands": "it has no leader"}, {}, "cannot be read: it has no leader", id="commands leaderless"
        ),
        pytest.param(
            {"acks": end(30)},
            {"acks": stopped(17, "its leader does not answer")},
            "cannot be read: its leader does not answer",
            id="acks fell silent",
        ),
        pytest.param(
            {"commands": end(30)}, {"commands": stopped(17, None)}, "not read to its end yet", id="in part"
        ),
    ],
)
def test_no_plan_is_made_while_something_that_was_said_is_not_read(
    answers: dict[str, Answer], reached: dict[str, Reached], why: str
) -> None:
    batch = run(driver_at(), answered(**answers), **reached)

    topic = CONTROL.acks_topic if "acks" in answers else CONTROL.commands_topic
    assert topic in (batch.stamp.held or "")
    assert why in (batch.stamp.held or "")
    # Lags do not depend on it.
    assert batch.stamp.behind == ()


def test_acks_topic_of_one_tenant_that_cannot_be_read_holds_no_plans_of_others() -> None:
    control = replace(FILTERS.control_topics, acks_by_prefix={"shop-": "shop.acks"})
    driver = driver_at(filters=replace(FILTERS, control_topics=control))
    why = "partition 0 of shop.acks cannot be read: it has no leader"

    tenant = {("shop.acks", 0): "it has no leader"}
    stamp = run(driver, {**answered(), **tenant}).stamp
    of_all = run(driver, {**answered(acks="it is away"), **tenant}, now_ms=NOW_MS + 1).stamp

    assert (stamp.held, stamp.held_acks) == (None, {"shop.acks": why})
    assert stamp.remarks == (f"no plan is made for groups that acknowledge on shop.acks: {why}",)
    assert "it is away" in (of_all.held or "")
    assert of_all.held_acks == {}


def test_open_transaction_in_what_was_said_does_not_hold_plans() -> None:
    assert run(driver_at(), answered(acks=end(30, stable=10))).stamp.held is None


def test_partition_that_is_read_again_is_said_once_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    driver = driver_at({key: Position(99, 2, NOW_MS) for key in (O0, O1)})

    run(driver, {O0: end(10), O1: end(10), ACKS: end(0)})

    (record,) = [one for one in caplog.records if "read again from its start" in one.message]
    # One that is new is no news.
    assert record.__dict__["topic"] == OFFSETS_TOPIC
    assert record.__dict__["partitions"] == [0, 1]
    assert "re-created" in record.__dict__["reason"]


def test_tombstones_kept_for_less_than_a_batch_are_told_once_an_hour_and_by_every_stamp(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver = driver_at(configs=KnownConfigs(**{OFFSETS_TOPIC: 5_000}))
    run(driver, answered())

    batches = [run(driver, answered(), now_ms=NOW_MS + 30_000 * number) for number in (1, 2, 3)]

    assert [O0 in batch.intake.reread for batch in batches] == [True] * 3
    for batch in batches:
        (remark,) = batch.stamp.remarks
        assert "keeps tombstones for 5.0 s only (delete.retention.ms)" in remark
    (line,) = [one for one in caplog.records if one.levelname == "WARNING"]
    assert "each batch reads it again" in line.message
    assert run(driver, answered(), now_ms=NOW_MS + 94_000).stamp.remarks == ()


def test_many_partitions_whose_records_were_deleted_unread_are_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver = driver_at({O0: Position(10, 2, NOW_MS), O1: Position(11, 2, NOW_MS)})
    cut = {O0: End(log_start=20, stable=30, high=30), O1: End(log_start=21, stable=31, high=31)}

    batch = run(driver, {**cut, ACKS: end(0)})

    (line,) = [one for one in caplog.records if one.levelname == "WARNING"]
    assert line.__dict__["beginning_deleted"] == [0, 1]
    assert batch.beheaded(OFFSETS_TOPIC) == (0, 1)
    assert Stamp.from_json(batch.stamp.to_json()) == batch.stamp


def test_no_plan_is_made_while_the_clock_is_behind_the_tables() -> None:
    late = chosen(SourceOffset(tick=7, made_from="x"), clock_trouble="one of the two clocks was wrong")

    stamp = settled(driver_at(), late).stamp
    assert stamp.held == "one of the two clocks was wrong"
    assert stamp.is_clock_behind


@pytest.mark.parametrize(
    ("fields", "is_read_again"),
    [
        ({"group_type": "consumer"}, True),
        ({"group_type": "consumer", "records": []}, False),
        ({"group_type": "consumer", "unconfirmed_reason": "beheaded"}, False),
        ({"group_type": "classic"}, False),
    ],
)
def test_log_of_which_an_earlier_version_has_not_read_the_members_is_read_again_after_a_start(
    tmp_path: Path, fields: dict[str, Any], *, is_read_again: bool
) -> None:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    store = Store(str(tmp_path), term=1)
    store.write("consumer_groups", arrow("consumer_groups", {"offsets_partition": 1, **fields}), stamp_of())
    driver = driver_at(store=store)
    offset = Chooser(driver).next_offset(answered(), now_ms=NOW_MS)

    first = settled(driver, chosen(offset, past=Past()))
    later = settled(driver, chosen(offset))

    expected = [O1] if is_read_again else []
    assert [(topic, number) for topic, number, _ in first.stamp.distrusted] == expected
    assert [(topic, number) for topic, number, _ in later.stamp.distrusted] == expected
