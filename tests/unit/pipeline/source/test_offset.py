"""The offset of a batch, as Spark's checkpoint keeps it, and whether its batch may write."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kafka.positions import Answer, End, Intake, PartitionKey, Position, Span
from pipeline.run.replay import why_passed_over
from pipeline.source.offset import SourceOffset, from_json, state_of
from pipeline.tables.stamp import Stamp
from tests.support.job.batches import stamp_of

_KEYS = st.tuples(st.sampled_from(["__consumer_offsets", "lagwise.acks"]), st.integers(0, 60))
_COUNTS = st.integers(0, 2**62)
_ENDS = st.builds(End, log_start=_COUNTS, stable=_COUNTS, high=_COUNTS)


@st.composite
def offsets(draw: st.DrawFn) -> SourceOffset:
    answers: dict[PartitionKey, Answer] = draw(st.dictionaries(_KEYS, _ENDS | st.text(), max_size=8))
    answered = sorted(key for key, one in answers.items() if isinstance(one, End))
    spans = [
        Span(
            topic=topic,
            partition=number,
            start=draw(_COUNTS),
            end=draw(_COUNTS),
            leader_epoch=draw(st.integers(-1, 9)),
        )
        for topic, number in answered
        if draw(st.booleans())
    ]
    some = st.lists(st.sampled_from(answered), unique=True) if answered else st.just([])
    return SourceOffset(
        tick=draw(_COUNTS),
        made_from=draw(st.text()),
        cluster_id=draw(st.text()),
        chosen_by=draw(st.text()),
        intake=Intake(
            spans=tuple(spans),
            reread={key: draw(st.text()) for key in draw(some)},
            left=draw(_COUNTS),
            beheaded=frozenset(draw(some)),
            impatient=tuple(draw(some)),
        ),
        answers=answers,
        failure=draw(st.none() | st.tuples(st.text(), st.text())),
    )


@given(offsets())
def test_offset_is_the_same_when_it_has_been_in_the_checkpoint(offset: SourceOffset) -> None:
    assert from_json(json.loads(json.dumps(offset.to_json()))) == offset


@pytest.mark.parametrize("foreign", [{}, {"offset": 3, "timestamp": 1_700_000_000_000}])
def test_offset_of_another_source_is_none_of_ours(foreign: dict[str, Any]) -> None:
    assert from_json(foreign) is None


BEFORE = stamp_of(at_ms=1_000, tick=900, positions={("t", 0): Position(5)})
DONE = stamp_of(at_ms=2_000, tick=1_900, positions={("t", 0): Position(9)})
LATER = stamp_of(at_ms=3_000, tick=2_900, positions={("t", 0): Position(12)})
READ_AGAIN = stamp_of(at_ms=1_000, tick=0, positions={})
CHOSEN = SourceOffset(tick=1_900, made_from=state_of(BEFORE), chosen_by="q")


def why(
    newest: Stamp | None, begun: Stamp | None = None, *, query: str = "q", of: SourceOffset = CHOSEN
) -> str | None:
    return why_passed_over(of, newest, begun, query=query, cluster_id="here")


@pytest.mark.parametrize(
    "newest", [BEFORE, DONE], ids=["tables from which it was chosen", "tables that hold this very batch"]
)
def test_batch_writes_where_it_was_chosen_and_goes_on_where_it_had_come_to(newest: Stamp) -> None:
    assert why(newest) is None


@pytest.mark.parametrize(
    "newest",
    [None, LATER, READ_AGAIN],
    ids=["lost tables", "newer tables and an older checkpoint", "all is to be read again"],
)
def test_batch_that_was_chosen_from_other_tables_is_passed_over(newest: Stamp | None) -> None:
    said = why(newest) or ""

    assert f"tables as of {state_of(BEFORE)}" in said
    assert said.endswith(state_of(newest))


def test_batch_that_another_query_has_chosen_is_gone_on_with_only_if_it_was_begun() -> None:
    # What the leaders said to it may be a week old: that everything is read, that no deletion was missed.
    half_done = stamp_of(at_ms=2_000, tick=1_900)

    assert why(BEFORE, half_done, query="next") is None
    assert why(DONE, half_done, query="next") is None
    for begun in (None, BEFORE):
        assert "before this query began" in (why(BEFORE, begun, query="next") or "")


def test_batch_chosen_from_empty_tables_writes_to_empty_tables() -> None:
    assert why(None, of=SourceOffset(tick=5, made_from=state_of(None), chosen_by="q")) is None


@pytest.mark.parametrize(
    "newest", [BEFORE, DONE, None], ids=["the same tables", "this very batch", "no tables"]
)
def test_checkpoint_of_another_cluster_is_named_as_such(newest: Stamp | None) -> None:
    of_another = replace(CHOSEN, cluster_id="there", made_from=state_of(newest))

    assert why(newest, of=of_another) == "it was chosen for Kafka cluster there, and this is here"
    assert why(BEFORE, of=replace(CHOSEN, cluster_id="here")) is None
