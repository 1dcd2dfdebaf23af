"""The judge of who read what when."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.followers.stays import Stay, overlapping


def stay(who: str, start: float, end: float, place: int = 0) -> Stay[int]:
    return Stay(place=place, who=who, start=start, end=end)


def test_overlap_behind_a_short_stay_of_a_third_member_is_seen() -> None:
    long, short, late = stay("a", 0, 10), stay("z", 2, 3), stay("b", 5, 12)

    assert overlapping([late, short, long]) == [(long, short), (long, late)]


@given(
    st.lists(
        st.builds(
            lambda who, start, length, place: stay(who, start, start + length, place),
            st.sampled_from("abc"),
            st.integers(0, 20),
            st.integers(1, 10),
            st.integers(0, 1),
        ),
        max_size=8,
    )
)
def test_pairs_of_two_members_at_one_time_are_found_and_no_others(stays: list[Stay[int]]) -> None:
    def collide(one: Stay[int], two: Stay[int]) -> bool:
        at_once = max(one.start, two.start) < min(one.end, two.end)
        return one.place == two.place and one.who != two.who and at_once

    wanted = {frozenset(map(id, pair)) for pair in combinations(stays, 2) if collide(*pair)}

    assert {frozenset(map(id, pair)) for pair in overlapping(stays)} == wanted
