"""As far as a read_committed consumer has been able to read, while transactions come and go."""

import pytest

from pipeline.lag.readable import readable_end, readable_offset
from tests.support.job.measures import ints, plain


@pytest.mark.parametrize(
    ("before", "now", "readable"),
    [
        # (last stable, log end) of the two looks
        ((100, 100), (130, 130), 130),  # no transaction
        ((100, 100), (100, 130), 100),  # one begins
        ((100, 130), (100, 160), 100),  # it goes on
        ((100, 160), (190, 190), 130),  # it has ended: only what came since counts
        ((100, 160), (170, 190), 110),  # one has ended, the next one is open
        ((100, 101), (130, 131), 129),  # short ones hold back little
        ((100, 160), (150, 150), 100),  # it was aborted and the log was cut
    ],
)
def test_what_was_held_back_at_the_look_before_is_not_readable_for_long(
    before: tuple[int, int], now: tuple[int, int], readable: int
) -> None:
    stable_before, end_before = before

    found = readable_offset(
        ints([now[0]]), stable_before=ints([stable_before]), end_before=ints([end_before])
    )

    assert plain(found) == [readable]


def test_first_answer_counts_as_it_is_and_no_answer_is_unknown() -> None:
    found = readable_offset(
        ints([100, None, 100]), stable_before=ints([None, 90, 90]), end_before=ints([95, 95, None])
    )

    assert plain(found) == [100, None, 100]


@pytest.mark.parametrize(
    ("committed", "end"),
    [
        pytest.param(50, 100, id="a transaction holds back the rest"),
        pytest.param(120, 120, id="it has read what has just become readable"),
        pytest.param(121, 150, id="it reads what is not committed"),
        pytest.param(None, 100, id="it has committed nothing"),
    ],
)
def test_log_ends_where_the_group_can_have_read_to(committed: int | None, end: int) -> None:
    found = readable_end(ints([100]), ints([120]), committed=ints([committed]), log_end=ints([150]))

    assert plain(found) == [end]


def test_without_an_answer_nothing_is_known_of_transactions() -> None:
    unknown = readable_end(ints([None]), ints([None]), committed=ints([50]), log_end=ints([150]))
    # The readable offset is of the answer before, as the log end is.
    silent = readable_end(ints([100]), ints([None]), committed=ints([121]), log_end=ints([150]))

    assert (plain(unknown), plain(silent)) == ([150], [121])
