"""Advice for any KIP-848 group is a valid assignment, the one that a classic group of the same members would get."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from assignor.evaluation.validity import check
from assignor.strategies.registry import STRATEGIES
from pipeline.planning.facts import GroupFacts
from pipeline.planning.state import FRESH
from tests.support.planning.alone import decide, to_problem
from tests.support.planning.facts import NOW_MS, RULES, group, kip848_group, partitions


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[int], dict[str, dict[str, tuple[int, ...]]], str]:
    """Lags of some partitions, which members own which, and a strategy."""
    lags = draw(st.lists(st.integers(0, 900_000), min_size=1, max_size=12))
    names = draw(st.lists(st.uuids().map(str), min_size=1, max_size=5, unique=True))
    owners = draw(st.lists(st.sampled_from(names), min_size=len(lags), max_size=len(lags)))
    held = {name: {"t": tuple(n for n, owner in enumerate(owners) if owner == name)} for name in names}
    return lags, held, draw(st.sampled_from(sorted(STRATEGIES)))


def _decided(facts: GroupFacts, lags: list[int], strategy: str) -> tuple[object, ...]:
    rules = replace(RULES, strategy=strategy)
    decision = decide(facts, partitions(list(lags)), rules, None, FRESH, now_ms=NOW_MS)
    if decision.target is not None:
        problem, _ = to_problem(facts, partitions(list(lags)), rules, FRESH, now_ms=NOW_MS)
        check(problem.group, decision.target.assignment)
    return decision.assignment, decision.moves, decision.decided


@given(worlds())
def test_advice_is_valid_and_what_a_classic_group_gets(
    world: tuple[list[int], dict[str, dict[str, tuple[int, ...]]], str],
) -> None:
    lags, held, strategy = world

    assignment, moves, decided = _decided(kip848_group(held), lags, strategy)
    classic, classic_moves, published = _decided(group(held), lags, strategy)

    assert (assignment, moves) == (classic, classic_moves)
    assert decided == ("advice" if published == "publish" else published)


@given(worlds(), st.data())
def test_nothing_is_advised_while_a_partition_has_no_owner_or_two(
    world: tuple[list[int], dict[str, dict[str, tuple[int, ...]]], str], data: st.DataObject
) -> None:
    lags, held, strategy = world
    number = data.draw(st.integers(0, len(lags) - 1))
    name = data.draw(st.sampled_from(sorted(held)))
    owned = held[name]["t"]
    changed = tuple(n for n in owned if n != number) if number in owned else (*owned, number)

    assignment, _, decided = _decided(kip848_group({**held, name: {"t": changed}}), lags, strategy)

    assert (assignment, decided) == (None, "abstain")
