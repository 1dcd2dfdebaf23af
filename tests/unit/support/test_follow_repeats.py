"""The judge of what was processed twice tells kills from rebalances."""

from typing import Any

from tests.support.followers.follow_repeats import Repeats, repeats


def lines(*said: tuple[str, str, Any]) -> list[dict[str, Any]]:
    """Of partition 0; a record has its offset."""
    more = {"record": lambda offset: {"place": 0, "offset": offset}, "hurt": lambda _: {}}
    return [
        {"at": at, "who": who, "what": what, **more.get(what, lambda _: {"places": [0]})(detail)}
        for at, (who, what, detail) in enumerate(said)
    ]


def test_record_of_a_killed_member_is_repeated_by_its_kill() -> None:
    said = lines(("a", "record", 1), ("a", "hurt", None), ("b", "record", 1), ("b", "record", 2))

    assert repeats(said) == Repeats(by_kill=1, by_rebalance=0)


def test_record_that_was_given_up_alive_is_repeated_by_the_rebalance() -> None:
    said = lines(("a", "record", 1), ("a", "revoked", None), ("a", "hurt", None), ("b", "record", 1))

    assert repeats(said) == Repeats(by_kill=0, by_rebalance=1)
