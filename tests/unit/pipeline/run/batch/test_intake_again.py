"""A batch that runs again, as its first run did."""

from dataclasses import replace

from pipeline.kafka.positions import Position, Span
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.run.batch.intake import Settled
from pipeline.run.driver import Driver
from pipeline.run.replay import Past
from pipeline.source.offset import SourceOffset
from pipeline.source.summary import Reached
from pipeline.tables.stamp import Stamp
from tests.support.job.batches import CONTROL, stamp_of
from tests.support.job.intakes import (
    ACKS,
    KNOWN,
    NOW_MS,
    O0,
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
