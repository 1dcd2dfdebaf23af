"""Ranges are read the same, whether the text is taken for one that was written or looked at span by span."""

from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from assignor.errors import DecodeError
from assignor.protocol import ranges

WRITTEN = st.sets(st.integers(0, 30) | st.integers(0, ranges.MAX_PARTITION)).map(ranges.format_ranges)
VALID = st.sampled_from(("0", "1", "3", "7", "0-1", "1-3", "5-7"))
ODD = st.sampled_from(("5-4", "5-5", "01", "", "+1", " 2", "1_0", "٣", "-1", "1-"))
JOINED = st.lists(VALID, max_size=4).map(",".join) | st.lists(VALID | ODD, max_size=3).map(",".join)


@given(text=WRITTEN | JOINED | st.text("0123-,", max_size=12), at_most=st.integers(0, 40))
@example(text="0,1", at_most=2)
@example(text="1_0", at_most=2)
def test_text_means_the_same_read_at_once_and_read_span_by_span(text: str, at_most: int) -> None:
    at_once = outcome(lambda: ranges.parse_ranges(text, at_most=at_most))
    by_position = outcome(lambda: ranges._parsed_by_position(text, at_most=at_most))

    assert at_once == by_position


def outcome(read: Callable[[], tuple[int, ...]]) -> tuple[int, ...] | str:
    try:
        return read()
    except DecodeError as error:
        return str(error)
