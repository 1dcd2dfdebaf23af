import pytest

from assignor.evaluation import validity
from assignor.model.group import Group
from assignor.strategies.sticky import constrained as constrained_sticky
from tests.support.assignors.groups import by_name, group, member


def holders(built: Group) -> list[str | None]:
    names = (*built.member_ids, None)
    return [names[holder] for holder in built.ownership.holder]


def test_newest_generation_wins() -> None:
    built = group(
        {"t": 2},
        member("stale", "t", owned={"t": [0, 1]}, generation=4),
        member("live", "t", owned={"t": [1]}, generation=5),
    )

    assert holders(built) == ["stale", "live"]
    assert not built.ownership.contested.any()


def test_partition_claimed_twice_in_the_newest_generation_has_no_holder() -> None:
    built = group(
        {"t": 1},
        member("a", "t", owned={"t": [0]}, generation=5),
        member("b", "t", owned={"t": [0]}, generation=5),
        member("c", "t", owned={"t": [0]}, generation=4),
    )

    assert holders(built) == [None]
    assert built.ownership.contested.tolist() == [True]


def test_contest_of_an_older_generation_is_settled_by_a_newer_claim() -> None:
    built = group(
        {"t": 1},
        member("a", "t", owned={"t": [0]}, generation=4),
        member("b", "t", owned={"t": [0]}, generation=4),
        member("c", "t", owned={"t": [0]}, generation=5),
    )

    assert holders(built) == ["c"]
    assert not built.ownership.contested.any()


def test_member_that_repeats_its_own_claim_does_not_contest_it() -> None:
    built = group({"t": 1}, member("a", "t", owned={"t": [0, 0]}), member("b", "t"))

    assert holders(built) == ["a"]
    assert not built.ownership.contested.any()


def test_repeated_claim_does_not_hide_another_claimant() -> None:
    built = group({"t": 1}, member("a", "t", owned={"t": [0, 0]}), member("b", "t", owned={"t": [0]}))

    assert built.ownership.contested.tolist() == [True]


def test_claim_without_generation_loses_to_one_with() -> None:
    built = group(
        {"t": 1},
        member("v0", "t", owned={"t": [0]}, generation=-1),
        member("v1", "t", owned={"t": [0]}, generation=0),
    )

    assert holders(built) == ["v1"]


@pytest.mark.parametrize("generation", [-2, -(2**31)])
def test_generation_below_zero_is_none_like_any_other(generation: int) -> None:
    built = group(
        {"t": 2},
        member("a", "t", owned={"t": [0, 1]}, generation=generation),
        member("b", "t", owned={"t": [0]}, generation=-1),
    )

    assert holders(built) == [None, "a"]
    assert built.ownership.generation.tolist() == [-1, -1]


@pytest.mark.parametrize("order", [(10, 9, 8), (8, 9, 10), (9, 10, 8)])
def test_partition_claimed_in_three_generations_goes_to_the_newest(order: tuple[int, int, int]) -> None:
    claimed = [[0, 1, 2, 3], [0, 1], [0, 2]]
    built = group(
        {"t": 6},
        *(
            member(f"m{i}", "t", owned={"t": numbers}, generation=generation)
            for i, (generation, numbers) in enumerate(zip(order, claimed, strict=True))
        ),
    )

    target = constrained_sticky.assign(built)

    newest = f"m{order.index(10)}"
    assert holders(built)[0] == newest
    assert "t-0" in by_name(built, target)[newest]
    validity.check(built, target, even="group")
