"""The leader's rule under any user data and any plan: valid, complete, whole, and never two owners."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assignor.clients.plugin.dialect import Dialect, Joined, dialect
from assignor.clients.plugin.leader import decide
from assignor.clients.plugin.user_data import (
    UNKNOWN,
    SubscriptionData,
    assignment_data_of,
    decode_subscription_data,
    encode_subscription_data,
    subscription_data_of,
)
from assignor.errors import DecodeError
from assignor.evaluation import validity
from assignor.model.by_member import by_member
from assignor.protocol.kafka.sticky import Claims
from assignor.strategies.registry import STRATEGIES, strategy
from tests.support.followers.plans import plan

IDS = ("a", "b", "c")
TOPICS = ("t", "u", "gone")
COUNTS = {"t": 3, "u": 2}

by_topic = st.dictionaries(
    st.sampled_from(TOPICS), st.lists(st.integers(-1, 4), max_size=4).map(tuple), max_size=3
)
subscription_data = st.builds(
    SubscriptionData,
    claims=st.builds(Claims, owned=by_topic, generation=st.integers(-1, 9)),
    plan_epoch=st.integers(0, 2**63 - 1),
    held=st.booleans(),
)
user_data = st.none() | st.binary(max_size=40) | subscription_data.map(encode_subscription_data)
subscriptions = st.lists(st.sampled_from(TOPICS), max_size=3, unique=True)
assignors = st.sampled_from(sorted(name for name in STRATEGIES if not STRATEGIES[name].reads_lag))
dialects = st.sampled_from(["lagwise", "sticky", "cooperative-sticky", "range"]).map(dialect)


@st.composite
def groups(draw: st.DrawFn) -> list[Joined]:
    ids = draw(st.permutations(IDS))[: draw(st.integers(1, 3))]
    return [
        Joined(
            member_id=i,
            topics=draw(st.just(["t", "u"]) | subscriptions),
            user_data=draw(user_data),
            owned=draw(st.none() | by_topic),
            generation=draw(st.integers(-1, 9)),
        )
        for i in ids
    ]


@st.composite
def dealt(draw: st.DrawFn, ids: Sequence[str]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Every partition with one member, so that plans often fit."""
    owners = {(t, n): draw(st.sampled_from(sorted(ids))) for t, count in COUNTS.items() for n in range(count)}
    return {
        i: {t: tuple(n for (topic, n), owner in owners.items() if (topic, owner) == (t, i)) for t in COUNTS}
        for i in ids
    }


@given(groups(), assignors, dialects, st.data())
def test_whatever_members_say_the_target_is_valid_and_complete(
    members: list[Joined], name: str, spoken: Dialect, data: st.DataObject
) -> None:
    ids = [member.member_id for member in members]
    target = data.draw(dealt(ids) | st.fixed_dictionaries(dict.fromkeys(ids, by_topic)))
    record = plan({i: data.draw(by_topic) for i in ids}, target, generation=data.draw(st.integers(-1, 9)))

    decision = decide(counts=COUNTS, members=members, strategy=strategy(name), plan=record, dialect=spoken)

    validity.check(decision.group, decision.target)
    if decision.plan_epoch is not None:
        placed = by_member(decision.group, decision.target.member)
        wanted = {i: {t: tuple(sorted(n)) for t, n in target[i].items() if n} for i in ids}
        assert placed == wanted


@given(groups(), assignors, dialects)
def test_what_a_cooperative_member_holds_goes_to_nobody_else(
    members: list[Joined], name: str, spoken: Dialect
) -> None:
    decision = decide(counts=COUNTS, members=members, strategy=strategy(name), plan=None, dialect=spoken)

    given_out = by_member(decision.group, decision.step.member)
    ahead: dict[tuple[str, int], int] = {}
    holders: dict[tuple[str, int], set[str]] = {}
    for member in members:
        data = spoken.hear(member)
        for place in {(t, n) for t, numbers in data.claims.owned.items() for n in numbers}:
            if data.held and data.claims.generation >= ahead.get(place, -2):
                if data.claims.generation > ahead.get(place, -2):
                    holders[place] = set()
                ahead[place] = data.claims.generation
                holders[place].add(member.member_id)
    for member_id, placed in given_out.items():
        for place in {(t, n) for t, numbers in placed.items() for n in numbers}:
            assert holders.get(place, {member_id}) == {member_id}


@given(groups(), assignors)
def test_order_of_members_changes_nothing(members: list[Joined], name: str) -> None:
    one = decide(counts=COUNTS, members=members, strategy=strategy(name), plan=None)
    other = decide(counts=COUNTS, members=members[::-1], strategy=strategy(name), plan=None)

    assert np.array_equal(one.step.member, other.step.member)


@given(subscription_data)
def test_subscription_data_survives_a_round_trip(data: SubscriptionData) -> None:
    assert decode_subscription_data(encode_subscription_data(data)) == data


@given(st.binary(max_size=64))
def test_any_bytes_are_subscription_data_or_nothing(data: bytes) -> None:
    try:
        expected = decode_subscription_data(data)
    except DecodeError:
        expected = UNKNOWN

    assert subscription_data_of(data) == expected
    assert assignment_data_of(data).epoch >= 0
