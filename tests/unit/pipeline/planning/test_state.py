"""What a decision remembers, as text in a table."""

import json
from dataclasses import asdict, replace

from pipeline.planning.state import (
    FRESH,
    GroupState,
    MemberRate,
    PlanState,
    Spell,
    Witness,
    from_json,
    to_json,
)

KNOWN = GroupState(generation=4, since_ms=1000, rates={"a": MemberRate(rate=5.0, shown=7.0, seen_at_ms=1000)})
PLAN = PlanState(
    epoch=3,
    base_generation=4,
    target={"a": {"t": "0-1"}},
    revoked={},
    receivers=("a",),
    moves=1,
    published_at_ms=1,
    sent_at_ms=1,
    valid_until_ms=2,
    lag=10,
    drain_s=None,
    status_at_ms=1,
)


def test_state_of_an_earlier_version_is_taken_with_what_it_has() -> None:
    values = json.loads(to_json(KNOWN))
    del values["rebalanced_at_ms"]

    assert from_json(json.dumps(values)) == KNOWN


def test_group_is_seen_to_be_rebalanced_only_once_it_was_seen_before() -> None:
    first = FRESH.seen(4, 1000)
    later = first.seen(4, 2000).seen(5, 3000)

    assert first == replace(FRESH, generation=4, since_ms=1000)
    assert later == replace(FRESH, generation=5, since_ms=3000, rebalanced_at_ms=3000)


def test_text_of_a_state_has_every_field_in_the_order_of_names() -> None:
    state = replace(KNOWN, plan=PLAN, moved_at_ms={"t:0": (1, 2)})

    text = to_json(state)

    assert text == json.dumps(asdict(state), sort_keys=True, separators=(",", ":"))
    assert from_json(text) == state


def test_state_that_remembers_less_and_something_else_is_taken_with_what_is_known_of_it() -> None:
    """A state of 0.1.0: a cooldown of its own, rates without spells, a plan that nobody judges."""
    values = json.loads(to_json(replace(KNOWN, plan=PLAN)))
    for name in ("hurts", "hurt_at_ms", "probation_until_ms"):
        del values[name]
    for name in ("spells", "still_since_ms"):
        del values["rates"]["a"][name]
    for name in ("undo", "witnesses", "effect", "effect_why", "effect_at_ms", "takes_back"):
        del values["plan"][name]
    values |= {"cooldown_ms": 1_200_000}
    values["rates"]["a"] |= {"is_rising": True}
    values["plan"] |= {"helped": None}

    assert from_json(json.dumps(values)) == replace(KNOWN, plan=PLAN)


def test_spells_and_witnesses_come_back_as_they_were() -> None:
    spell = Spell(held={"t": "0-3"}, speeds=(400.0, 500.0), at_ms=900)
    witness = Witness(
        member_id="a", kept_up=True, losing=0.5, arriving=8, arriving_then=9, commits_ms=(1, 2), lags=(3, 4)
    )
    state = replace(
        KNOWN,
        rates={"a": replace(KNOWN.rates["a"], spells=(spell,), still_since_ms=7)},
        plan=replace(PLAN, witnesses=(witness,), effect="hurt", effect_why="so", takes_back=2),
        hurts=2,
        probation_until_ms=9,
    )

    assert from_json(to_json(state)) == state


def test_text_that_is_no_state_is_that_of_a_new_group() -> None:
    assert [from_json(text) for text in (None, "", "{", '{"plan":{"epoch":1}}', '{"rates":[]}')] == [
        FRESH
    ] * 5
