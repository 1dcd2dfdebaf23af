"""All strategies in one property: a group is drawn once, and drawing it takes longer than most of them need."""

from collections.abc import Iterator

from hypothesis import note

from assignor.strategies.registry import STRATEGIES, Strategy


def each_strategy() -> Iterator[Strategy]:
    """One after the other; hypothesis prints the names down to that of the one that fails."""
    for name, strategy in STRATEGIES.items():
        note(name)
        yield strategy
