import pytest

from assignor.errors import NoCommonAssignorError
from assignor.strategies.catalogue import RebalanceProtocol
from assignor.strategies.selection import (
    DEFAULT_ASSIGNORS,
    Mode,
    Selection,
    rebalance_protocol,
    select_assignor,
)

OLD = ("range",)
BOTH = DEFAULT_ASSIGNORS["kip"]
NEW = ("cooperative-sticky",)


@pytest.mark.parametrize(
    ("lists", "assignor"),
    [
        ([OLD, OLD], "range"),
        ([BOTH, OLD], "range"),
        ([BOTH, BOTH], "cooperative-sticky"),
        ([NEW, BOTH], "cooperative-sticky"),
        ([DEFAULT_ASSIGNORS["shipped"], DEFAULT_ASSIGNORS["shipped"]], "range"),
    ],
    ids=["before the bounce", "during it", "after it", "range dropped by some", "shipped default"],
)
def test_rolling_bounce_selects_the_new_assignor_once_all_have_it(
    lists: list[tuple[str, ...]], assignor: str
) -> None:
    assert select_assignor(lists).assignor == assignor


def test_most_first_choices_win() -> None:
    lists = [("a", "b"), ("b", "a"), ("b", "a")]

    assert select_assignor(lists) == Selection(assignor="b", votes=2, tie=False)


def test_votes_count_before_places_in_the_lists() -> None:
    lists = [("z", "x", "b", "c"), ("z", "x", "b", "c"), ("b", "x", "c", "z")]

    assert select_assignor(lists) == Selection(assignor="z", votes=2, tie=False)


def test_member_votes_for_its_first_choice_among_what_all_support() -> None:
    lists = [("own", "b", "a"), ("a", "b"), ("b", "a")]

    assert select_assignor(lists) == Selection(assignor="b", votes=2, tie=False)


def test_tie_goes_to_the_name_further_forward_and_is_told() -> None:
    lists = [("b", "c", "a"), ("a", "b", "c")]

    assert select_assignor(lists) == Selection(assignor="b", votes=1, tie=True)


def test_full_tie_goes_to_the_first_by_name_whatever_the_order_of_members() -> None:
    lists = [("b", "a"), ("a", "b")]

    assert (
        select_assignor(lists) == select_assignor(lists[::-1]) == Selection(assignor="a", votes=1, tie=True)
    )


@pytest.mark.parametrize(
    ("lists", "names"), [([OLD, NEW], "cooperative-sticky, range"), ([], "none"), ([(), OLD], "range")]
)
def test_members_without_a_common_assignor_are_an_error(lists: list[tuple[str, ...]], names: str) -> None:
    with pytest.raises(NoCommonAssignorError, match=f"they list: {names}"):
        select_assignor(lists)


@pytest.mark.parametrize(
    ("mode", "selected", "listed", "protocol"),
    [
        ("kip", "cooperative-sticky", BOTH, RebalanceProtocol.COOPERATIVE),
        ("kip", "range", BOTH, RebalanceProtocol.EAGER),
        ("shipped", "cooperative-sticky", BOTH, RebalanceProtocol.EAGER),
        ("shipped", "cooperative-sticky", NEW, RebalanceProtocol.COOPERATIVE),
        ("shipped", "range", BOTH, RebalanceProtocol.EAGER),
        ("kip", "somebody's own", NEW, RebalanceProtocol.EAGER),
        ("kip", "constrained-cooperative-sticky", OLD, RebalanceProtocol.COOPERATIVE),
    ],
)
def test_protocol_follows_the_selected_assignor_or_as_shipped_the_whole_list(
    mode: Mode, selected: str, listed: tuple[str, ...], protocol: RebalanceProtocol
) -> None:
    assert rebalance_protocol(selected, listed, mode=mode) == protocol
