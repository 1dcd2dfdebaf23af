import pickle

import pytest

from assignor import errors
from assignor.errors import AssignorError, InvalidOptionError, UnknownStrategyError
from assignor.strategies.catalogue import RebalanceProtocol
from assignor.strategies.registry import STRATEGIES, strategy


def test_unknown_strategy_is_answered_with_those_there_are() -> None:
    with pytest.raises(UnknownStrategyError, match=r"there are: .*lag-aware"):
        strategy("lagaware")


@pytest.mark.parametrize("name", STRATEGIES)
def test_strategy_is_found_by_its_own_name(name: str) -> None:
    assert strategy(name).name == name


def test_names_are_listed_in_order() -> None:
    assert list(STRATEGIES) == sorted(STRATEGIES)


def test_protocols_are_ascending_and_start_with_eager() -> None:
    for entry in STRATEGIES.values():
        assert entry.protocols[0] == RebalanceProtocol.EAGER
        assert sorted(entry.protocols) == list(entry.protocols)


def test_option_that_is_not_given_has_its_default() -> None:
    assert strategy("lag-aware").check_options({}) == {"scope": "topic", "ties": "lag"}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lag-aware", {"scoop": "topic"}, "lag-aware: option 'scoop' is unknown; known options are: scope"),
        ("lag-aware", {"scope": "all"}, "option 'scope' must be one of topic, group, got 'all'"),
        ("lag-aware", {"scope": ["topic"]}, "must be one of"),
        ("cooperative-sticky", {"scope": "topic"}, "is unknown; known options are: none"),
    ],
    ids=["unknown", "unknown value", "wrong type", "strategy without options"],
)
def test_option_that_the_strategy_does_not_take_is_refused(
    name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        strategy(name).check_options(options)


@pytest.mark.parametrize(
    "error",
    [
        errors.UnequalSubscriptionsError("a", "b"),
        UnknownStrategyError("a", ("b", "c")),
        InvalidOptionError("a", "b", "c"),
        errors.InvalidAssignmentError(("a", "b")),
        errors.InvalidCaseError("a", "b"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_survives_the_way_from_an_executor(error: AssignorError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301  pickled one line above

    assert str(copy) == str(error)
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
