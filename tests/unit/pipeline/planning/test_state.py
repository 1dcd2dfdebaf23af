"""What a decision remembers, as text in a table."""

import json
from dataclasses import asdict, replace

from pipeline.planning.state import FRESH, GroupState, MemberRate, PlanState, from_json, to_json

KNOWN = GroupState(generation=4, since_ms=1000, rates={"a": MemberRate(rate=5.0, shown=7.0, seen_at_ms=1000)})


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
    plan = PlanState(
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
    state = replace(KNOWN, plan=plan, moved_at_ms={"t:0": (1, 2)})

    text = to_json(state)

    assert text == json.dumps(asdict(state), sort_keys=True, separators=(",", ":"))
    assert from_json(text) == state
