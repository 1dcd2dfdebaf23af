"""What a batch reads, and what its stamp says when it has; one that runs again included."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.model import Config, SourceConfig
from pipeline.errors import OffsetsRefusedError
from pipeline.kafka.positions import REFUSED, TRUNCATED, Answer, End, Intake, PartitionKey, Position, Span
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch import intake
from pipeline.run.batch.intake import Settled
from pipeline.run.batch.opening import Chosen, Read
from pipeline.run.driver import Driver
from pipeline.run.replay import Past
from pipeline.source.decoded import Decoded
from pipeline.source.offset import SourceOffset
from pipeline.source.summary import Reached, Summary
from pipeline.tables.creation import create_tables
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from tests.support.job.batches import CONTROL, FILTERS, KnownConfigs, idle_driver, stamp_of
from tests.support.job.chosen import Chooser
from tests.support.job.frames import arrow

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
    assert "(delete.retention.ms) is not known" in batch.intake.reread[O1]


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


def test_open_transaction_in_what_was_said_does_not_hold_plans() -> None:
    assert run(driver_at(), answered(acks=end(30, stable=10))).stamp.held is None


FIRST_RUN = stamp_of(
    at_ms=NOW_MS - 500,
    cluster_id="c1",
    positions={**KNOWN, O0: Position(20, 3, NOW_MS - 500), ACKS: Position(12, 3, NOW_MS - 500)},
    spans=(
        Span(topic=OFFSETS_TOPIC, partition=0, start=10, end=20, leader_epoch=2),
        Span(topic=OFFSETS_TOPIC, partition=1, start=10, end=10, leader_epoch=2),
        Span(topic=CONTROL.acks_topic, partition=0, start=0, end=12),
    ),
    reread=(ACKS,),
)


def again(stamp: Stamp = FIRST_RUN, driver: Driver | None = None, **reached: Reached) -> Settled:
    offset = SourceOffset(tick=stamp.tick, made_from="what was before it")
    again = chosen(offset, at_ms=stamp.at_ms, past=Past(stamps={"topic_offsets": stamp}))
    return settled(driver or driver_at(), again, **reached)


def test_batch_that_runs_again_reads_the_same_spans_and_has_the_same_stamp() -> None:
    batch = again()

    assert [(span.key, span.start, span.end) for span in batch.intake.spans] == [(O0, 10, 20), (ACKS, 0, 12)]
    assert batch.stamp == FIRST_RUN
    assert batch.reread(CONTROL.acks_topic) == (0,)
    assert positions_of(batch.driver) == FIRST_RUN.positions


def test_batch_that_runs_again_without_a_span_is_behind_there_and_reads_it_later() -> None:
    batch = again(o0=stopped(14, SILENT))

    assert batch.stamp.behind == (0,)
    assert f"{OFFSETS_TOPIC}-0" in (batch.stamp.reason or "")
    assert batch.stamp.held is None
    assert positions_of(batch.driver) == {
        **KNOWN,
        O0: Position(10, 2, FIRST_RUN.at_ms),
        ACKS: Position(12, 3, NOW_MS - 500),
    }


def test_partition_that_a_batch_which_runs_again_has_read_from_its_start_is_not_read_so_once_more() -> None:
    driver = driver_at()
    distrust(driver, O0)
    first_run = replace(FIRST_RUN, reread=(O0,))

    batch = again(first_run, driver)
    after = run(driver, answered(o0=end(20)))

    assert (batch.stamp.distrusted, after.stamp.distrusted) == ((), ())


def test_batch_that_runs_again_without_what_was_said_holds_plans() -> None:
    batch = again(acks=stopped(0, SILENT))

    assert CONTROL.acks_topic in (batch.stamp.held or "")
    assert batch.stamp.behind == ()
    assert positions_of(batch.driver)[ACKS].offset == 0


def test_reasons_of_the_first_run_stay() -> None:
    late = replace(FIRST_RUN, behind=(1,), reason="1 is not read", held="acks are not read")

    batch = again(late, o0=stopped(10, SILENT))

    assert batch.stamp.behind == (0, 1)
    assert (batch.stamp.reason or "").startswith("1 is not read; ")
    assert batch.stamp.held == "acks are not read"


def test_span_that_a_batch_could_not_read_again_is_behind_until_it_is_read() -> None:
    batch = again(o0=stopped(10, SILENT))

    after = run(batch.driver, answered(o0=end(20)), o0=stopped(15, None))
    at_last = run(batch.driver, answered(o0=end(20)), now_ms=NOW_MS + 1)

    assert (after.stamp.behind, at_last.stamp.behind) == ((0,), ())


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
