"""What `lag-sticky` says about its answer, for an operator."""

import pytest

from assignor.model.group import Group
from tests.support.assignors.drain_groups import owned, remarks
from tests.support.assignors.groups import group, member

REMARKS = {
    "nothing late": (owned([5], [0]), {}, "no move: no member needs more than 20 s"),
    "nothing late but nothing to spare": (
        owned([0], [0], rates=[[9.5], [9.5]]),
        {"move_cost_s": 0.0},
        "no move: nobody is late, and no plan of at most 2 gives the busiest member more headroom",
    ),
    "headroom of a tenth": (
        owned([0, 0, 0], [0], rates=[[0.0, 4.2, 4.8], [0.0]]),
        {"max_moves": 1, "move_cost_s": 0.0},
        "no move: no member needs more than 20 s",
    ),
    "headroom that is not worth its moves": (
        owned([0, 0], [0, 0], rates=[[4.6, 4.52], [4.48, 4.46]]),
        {},
        (
            "no move: nobody is late, and no plan of at most 2 gives the busiest member "
            "enough headroom for its moves to pay (move_cost_s)"
        ),
    ),
    "sooner only below the floor": (
        owned([1025, 1025], [100], capacity=100.0),
        {},
        (
            "no move: no plan was found of at most 2 that drains it sooner by 1 s for each, with times up to 20 s counted "
            "as 20 s and members with less than a tenth of headroom as later: packing to deadlines and improving step by "
            "step were tried"
        ),
    ),
    "best already": (
        owned([900], [0]),
        {},
        "no move: no assignment is sooner, for partition t-0 alone takes 90 s on the fastest member that may read it",
    ),
    "no budget": (owned([900, 900], [0]), {"max_moves": 0}, "no move: max_moves is 0"),
    "forced by evenness": (
        owned([5, 5, 5, 5], []),
        {"max_moves": 0, "counts": "even"},
        "2 moves are forced by count_cap or counts, in addition to max_moves",
    ),
    "budget used up": (
        owned([900, 900, 900], [0], [0]),
        {"max_moves": 1},
        "max_moves of 1 is used up; no assignment takes less than 90 s",
    ),
    "little to gain": (
        owned([900, 100], [0]),
        {"min_gain": 0.5, "move_pause_s": 0.0},
        "no move: 1 move would save 18.0% of the lag area, less than min_gain (50.0%)",
    ),
    "costs more than it saves": (
        owned([900, 100], [0]),
        {"move_pause_s": 100.0},
        "no move: 1 move would save 9000 record-seconds of lag and cost 10000",
    ),
    "moves too dear": (
        owned([900, 100], [0]),
        {"move_cost_s": 11.0},
        "no move: no plan of at most 2 drains it sooner by 11 s for each",
    ),
    "moves too dear in a larger group": (
        owned([900, 100, *[1] * 12], [0]),
        {"move_cost_s": 12.0},
        (
            "no move: no plan was found of at most 2 that drains it sooner by 12 s for each: "
            "packing to deadlines and improving step by step were tried"
        ),
    ),
    "nearly the best already": (
        owned([9040], [9036, 4], [4]),
        {"move_cost_s": 0.0, "floor_s": 0.0},
        "no move: no assignment is sooner",
    ),
    "never drained, whatever is done": (
        owned([9, 9, 9], [9], rates=[[5.0, 5.0, 5.0], [8.0]]),
        {},
        "the group runs at 115 % of its capacity (receives 3 records/s more than it drains): add 1 member",
    ),
    "above capacity with any moves": (
        group(
            {"t": 7},
            member("a", "t", owned={"t": [2, 6]}, capacity=100.0),
            member("b", "t", owned={"t": [0, 1, 4]}, capacity=100.0),
            lags={"t": [146, 23707, 848, 22679, 2318, 2546, 7975]},
            rates={"t": [55.0, 43.0, 38.0, 26.0, 39.0, 45.0, 14.0]},
        ),
        {},
        "2 moves would not make the group catch up: b would still receive 32 records/s more than it drains",
    ),
    "sooner for one, later for all": (
        owned([310], [70, 630], rates=[[3.5], [5.0, 2.0]]),
        {"min_gain": 0.0},
        "1 move would drain the slowest member sooner, but leave more lag in all until everything is drained",
    ),
    "partition too fast": (
        owned([1], [0], rates=[[18.0], [0.0]]),
        {},
        "partition t-0 alone needs 1.8 members (receives 8 records/s more than the fastest drains): add partitions",
    ),
    "group too slow": (
        owned([9, 9], [9, 9], rates=[[5.6, 5.6], [5.6, 5.6]]),
        {},
        "the group runs at 112 % of its capacity (receives 2.4 records/s more than it drains): add 1 member",
    ),
    "fresh and best": (
        group({"t": 1}, member("a", "t", capacity=10.0), lags={"t": [900]}),
        {},
        "no further move: no assignment is sooner",
    ),
}


@pytest.mark.parametrize(("lagging", "options", "said"), REMARKS.values(), ids=list(REMARKS))
def test_reason_is_given_in_words(lagging: Group, options: dict[str, object], said: str) -> None:
    assert said in remarks(lagging, **options)


def test_floor_is_named_only_where_it_may_have_decided() -> None:
    far, no_floor = (
        remarks(owned([900, 100], [0]), move_cost_s=11.0),
        remarks(owned([150, 50], [0]), move_cost_s=30.0, floor_s=0.0),
    )

    assert far == "no move: no plan of at most 2 drains it sooner by 11 s for each"
    assert no_floor == "no move: no plan of at most 2 drains it sooner by 30 s for each"


def test_plan_that_speaks_for_itself_has_no_remarks() -> None:
    assert remarks(owned([900, 900], [0])) == ""
