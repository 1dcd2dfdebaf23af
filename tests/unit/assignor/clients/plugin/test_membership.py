"""One member from rebalance to rebalance: what it says, what it answers as leader, when it asks to rejoin."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from assignor.clients.control import ControlState
from assignor.clients.plugin.dialect import Joined
from assignor.clients.plugin.membership import GREATEST_EPOCH, Membership, following, under_strategy
from assignor.clients.plugin.user_data import (
    AssignmentData,
    Outcome,
    SubscriptionData,
    assignment_data_of,
    encode_assignment_data,
    encode_subscription_data,
    subscription_data_of,
)
from assignor.errors import UnknownStrategyError
from assignor.protocol import control
from assignor.protocol.acks import AnyAck, Applied, Refused, Void
from assignor.protocol.control import ControlRecord
from assignor.protocol.kafka.consumer import TopicPartitions
from assignor.protocol.kafka.sticky import Claims, encode_sticky_user_data
from tests.support.followers.plans import FOREVER_MS, joined, plan

BASE = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
TARGET = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
NOW_MS = 1_000


def feed(state: ControlState, record: ControlRecord) -> None:
    state.feed(control.encode_key(record.cluster, record.group), control.encode(record))


def taken_in(
    member: Membership, placed: TopicPartitions, data: bytes | None, generation: int
) -> AnyAck | None:
    return member.assigned(placed, data, generation, member="a", now_ms=NOW_MS)


def word(epoch: int) -> bytes:
    return encode_assignment_data(AssignmentData(epoch=epoch))


def member_of_generation(state: ControlState, generation: int) -> Membership:
    member = following(state)
    taken_in(member, BASE["a"], None, generation)
    return member


def leader_of_generation(state: ControlState, generation: int) -> Membership:
    member = following(state)
    answers = member.lead(counts={"t": 4}, members=[joined(i, ["t"], BASE[i]) for i in BASE], now_ms=NOW_MS)
    taken_in(member, *answers["a"], generation)
    return member


@pytest.fixture
def state() -> ControlState:
    return ControlState(cluster="local", group="g")


def test_eager_member_claims_what_it_had() -> None:
    member = under_strategy("constrained-cooperative-sticky")

    taken_in(member, {"t": (0, 1)}, None, 5)

    data = subscription_data_of(member.user_data({}))
    assert (data.claims.owned, data.claims.generation, data.held) == ({"t": (0, 1)}, 5, False)


def test_cooperative_member_claims_what_it_still_holds() -> None:
    member = under_strategy("constrained-cooperative-sticky")

    taken_in(member, {"t": (0, 1)}, None, 5)

    data = subscription_data_of(member.user_data({"t": (0,)}))
    assert (data.claims.owned, data.held) == ({"t": (0,)}, True)


def test_member_tells_the_epoch_it_has_read(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET, epoch=12))

    assert subscription_data_of(following(state).user_data({})).plan_epoch == 12


def test_leader_hands_out_the_plan_and_its_epoch(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET, epoch=12))

    answers = following(state).lead(
        counts={"t": 4}, members=[joined(i, ["t"], BASE[i]) for i in BASE], now_ms=NOW_MS
    )

    assert {i: placed for i, (placed, _) in answers.items()} == TARGET
    assert {assignment_data_of(data).epoch for _, data in answers.values()} == {12}


def test_expired_plan_is_not_handed_out(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET))

    answers = following(state).lead(
        counts={"t": 4}, members=[joined(i, ["t"], BASE[i]) for i in BASE], now_ms=FOREVER_MS
    )

    assert {i: placed for i, (placed, _) in answers.items()} == BASE


def test_leader_logs_what_it_assigned_by_and_why_in_the_message(
    state: ControlState, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="assignor.clients.plugin.membership")
    leader_of_generation(state, 5)
    without = caplog.messages[-1]
    feed(state, plan(BASE, TARGET, epoch=17))
    leader_of_generation(state, 5)

    assert without == "assigned a group by its strategy: sticky: no plan"
    assert caplog.messages[-1] == "assigned a group by the plan of epoch 17: the plan fits"


def test_every_member_asks_once_for_a_plan_of_its_own_generation(state: ControlState) -> None:
    member = member_of_generation(state, 7)
    feed(state, plan(BASE, TARGET, generation=7))

    assert [member.wants_rejoin(NOW_MS), member.wants_rejoin(NOW_MS)] == [True, False]


@pytest.mark.parametrize("generation", [6, 8])
def test_member_does_not_ask_for_a_plan_of_another_generation(state: ControlState, generation: int) -> None:
    member = member_of_generation(state, generation)
    feed(state, plan(BASE, TARGET, generation=7))

    assert not member.wants_rejoin(NOW_MS)


@pytest.mark.parametrize("leads", [False, True])
def test_nobody_asks_for_a_plan_that_moves_nothing(state: ControlState, *, leads: bool) -> None:
    member = leader_of_generation(state, 8) if leads else member_of_generation(state, 7)
    feed(state, plan(BASE, BASE, generation=7))
    assert not member.wants_rejoin(NOW_MS)

    feed(state, plan(BASE, TARGET, generation=7, epoch=2))

    assert member.wants_rejoin(NOW_MS)


def test_member_that_has_not_joined_does_not_ask(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET, generation=-1))

    assert not following(state).wants_rejoin(NOW_MS)


def test_nobody_asks_for_a_plan_that_a_leader_has_considered(state: ControlState) -> None:
    member = following(state)
    feed(state, plan(BASE, TARGET, epoch=3, generation=7))
    taken_in(member, BASE["a"], word(3), 7)

    assert not member.wants_rejoin(NOW_MS)


def test_leader_asks_for_a_plan_it_read_after_the_rebalance(state: ControlState) -> None:
    member = leader_of_generation(state, 8)
    feed(state, plan(BASE, TARGET, generation=7))

    assert member.wants_rejoin(NOW_MS)


def test_leader_does_not_ask_for_a_plan_of_a_generation_to_come(state: ControlState) -> None:
    member = leader_of_generation(state, 6)
    feed(state, plan(BASE, TARGET, generation=7))

    assert not member.wants_rejoin(NOW_MS)


def test_leader_does_not_ask_for_a_plan_of_other_members(state: ControlState) -> None:
    member = leader_of_generation(state, 8)
    feed(state, plan(BASE, {**TARGET, "c": {}}, generation=7))

    assert not member.wants_rejoin(NOW_MS)


def test_leader_gives_up_asking(state: ControlState) -> None:
    member = leader_of_generation(state, 8)
    feed(state, plan(BASE, TARGET, generation=7))
    asked = 0

    for generation in range(8, 20):
        member.lead(counts={"t": 4}, members=[joined(i, ["t"], BASE[i]) for i in BASE], now_ms=NOW_MS)
        taken_in(member, BASE["a"], word(0), generation)
        asked += member.wants_rejoin(NOW_MS)

    assert asked == 3


def test_member_that_no_longer_leads_does_not_ask_as_leader(state: ControlState) -> None:
    member = leader_of_generation(state, 8)
    taken_in(member, BASE["a"], word(0), 9)
    feed(state, plan(BASE, TARGET, generation=7))

    assert not member.wants_rejoin(NOW_MS)


def test_member_without_a_control_topic_never_asks() -> None:
    assert not under_strategy("sticky").wants_rejoin(NOW_MS)


def test_stream_join_counts_its_epoch_up_from_the_greatest_received() -> None:
    member = under_strategy("sticky-stream-join")
    members = [joined("a", ["t"], {"t": (0,)}, generation=4), joined("b", ["t"], generation=9)]

    placed, data = member.lead(counts={"t": 2}, members=members, now_ms=NOW_MS)["a"]
    taken_in(member, placed, data, 70)

    assert (assignment_data_of(data).epoch, subscription_data_of(member.user_data({})).claims.generation) == (
        10,
        10,
    )


def test_stream_join_prefers_the_claim_of_the_higher_epoch() -> None:
    member = under_strategy("sticky-stream-join")
    zombie = joined("a", ["t"], {"t": (0, 1)}, generation=4)
    live = joined("b", ["t"], {"t": (1,)}, generation=9)
    rejoined = joined("c", ["t"])

    answers = member.lead(counts={"t": 3}, members=[zombie, live, rejoined], now_ms=NOW_MS)

    assert {name: placed for name, (placed, _) in answers.items()} == {
        "a": {"t": (0,)},
        "b": {"t": (1,)},
        "c": {"t": (2,)},
    }


def test_epoch_of_a_hostile_member_leaves_the_answer_encodable() -> None:
    member = under_strategy("sticky-stream-join")
    hostile = joined("a", ["t"], generation=GREATEST_EPOCH)

    placed, data = member.lead(counts={"t": 2}, members=[hostile], now_ms=NOW_MS)["a"]
    taken_in(member, placed, data, 70)

    assert subscription_data_of(member.user_data({})).claims.generation == GREATEST_EPOCH


def test_first_epoch_of_a_stream_join_is_one() -> None:
    members = [Joined(member_id="a", topics=["t"], user_data=None)]

    _, data = under_strategy("sticky-stream-join").lead(counts={"t": 2}, members=members, now_ms=NOW_MS)["a"]

    assert assignment_data_of(data).epoch == 1


def test_strategy_that_weighs_lag_is_refused() -> None:
    with pytest.raises(UnknownStrategyError, match="sticky-stream-join") as refusal:
        under_strategy("lag-sticky")

    assert "lag-aware" not in refusal.value.available


def test_leader_awaits_the_newest_epoch_that_a_member_has_read_once(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET, epoch=3))
    leader = following(state)

    def claiming(*epochs: int) -> list[Joined]:
        claims = Claims(owned={}, generation=7)
        return [
            Joined(
                member_id=str(number),
                topics=["t"],
                user_data=encode_subscription_data(
                    SubscriptionData(claims=claims, plan_epoch=epoch, held=False)
                ),
            )
            for number, epoch in enumerate(epochs)
        ]

    awaited = [leader.awaits(claiming(*epochs)) for epochs in [(3, 2), (4, 5), (5, 3), (6,)]]

    assert awaited == [None, 5, None, 6]


def test_nothing_is_awaited_without_a_control_topic() -> None:
    assert under_strategy("sticky").awaits([joined("a", ["t"])]) is None


def test_member_keeps_its_partitions_when_its_group_goes_over_to_another_entry(state: ControlState) -> None:
    member = following(state)
    other = under_strategy("sticky", past=member.past)
    taken_in(member, {"t": (0, 1)}, None, 5)

    assert other.user_data({}) == encode_sticky_user_data(Claims(owned={"t": (0, 1)}, generation=5))


def test_member_asks_for_no_plan_of_a_generation_under_another_entry(state: ControlState) -> None:
    member = following(state)
    taken_in(under_strategy("sticky", past=member.past), BASE["a"], None, 7)
    feed(state, plan(BASE, TARGET, generation=7))

    assert not member.wants_rejoin(NOW_MS)


@pytest.mark.parametrize(
    ("name", "has_old_name", "on_the_wire"),
    [
        ("constrained-cooperative-sticky", False, "constrained-cooperative-sticky"),
        ("sticky-stream-join", False, "sticky-stream-join"),
        ("sticky", False, "sticky"),
        ("sticky", True, "lagwise-sticky"),
    ],
)
def test_name_on_the_wire_is_that_of_the_kip(name: str, has_old_name: bool, on_the_wire: str) -> None:
    assert under_strategy(name, has_old_name=has_old_name).name == on_the_wire


def test_lag_aware_leader_without_lag_falls_back_to_even_counts() -> None:
    member = under_strategy("lag-aware", knows_lag=True)
    members = [joined(i, ["t"], BASE[i]) for i in BASE]

    def placed(lags: Mapping[tuple[str, int], int] | None) -> dict[str, TopicPartitions]:
        answers = member.lead(counts={"t": 4}, members=members, now_ms=NOW_MS, lags=lags)
        return {i: partitions for i, (partitions, _) in answers.items()}

    lags = {("t", 0): 9, ("t", 1): 8, ("t", 2): 7, ("t", 3): 0}
    assert placed(None) == BASE
    assert placed({("t", 0): 9}) == BASE
    assert placed(lags) == {"a": {"t": (0, 3)}, "b": {"t": (1, 2)}}


def said_in(member: Membership, generation: int, *members: str) -> AnyAck | None:
    """What `a` acknowledges after it has led a rebalance of these members."""
    claims = [joined(i, ["t"], BASE.get(i), generation=7) for i in members]
    answers = member.lead(counts={"t": 4}, members=claims, now_ms=NOW_MS)
    return taken_in(member, *answers["a"], generation)


def test_member_acknowledges_the_plan_that_its_leader_has_applied(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET, epoch=12))

    said = said_in(following(state), 8, "a", "b")

    assert said == Applied(cluster="local", group="g", generation=8, epoch=12, member="a", at_ms=NOW_MS)


def test_member_refuses_the_plan_in_the_words_of_its_leader(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET, epoch=12))

    said = said_in(following(state), 8, "a", "b", "c")

    assert isinstance(said, Refused)
    assert (said.epoch, said.generation) == (12, 8)
    assert "other members, 1 differ" in said.why


def test_plan_that_fits_no_more_is_void_where_it_was_applied(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET, epoch=12))
    member = following(state)
    said_in(member, 8, "a", "b")

    said = said_in(member, 9, "a", "b", "c")

    assert isinstance(said, Void)
    assert (said.epoch, said.generation) == (12, 9)


def test_cooperative_member_acknowledges_the_plan_when_it_has_all_of_its_target(state: ControlState) -> None:
    feed(state, plan(BASE, TARGET, epoch=12))
    leader = following(state)

    def outcomes(owned: Mapping[str, TopicPartitions]) -> dict[str, Outcome]:
        claims = [joined(i, ["t"], owned[i], held=True) for i in owned]
        answers = leader.lead(counts={"t": 4}, members=claims, now_ms=NOW_MS)
        return {i: assignment_data_of(data).outcome for i, (_, data) in answers.items()}

    first = outcomes(BASE)
    second = outcomes({"a": {"t": (0,)}, "b": {"t": (2, 3)}})

    assert first == {"a": Outcome.APPLIED, "b": Outcome.SILENT}
    assert second == {"a": Outcome.APPLIED, "b": Outcome.APPLIED}


@pytest.mark.parametrize("more", [{"dry_run": True}, {"valid_until_ms": NOW_MS}], ids=["dry run", "expired"])
def test_nothing_is_acknowledged_of_a_plan_that_is_not_to_be_followed(
    state: ControlState, more: dict[str, Any]
) -> None:
    feed(state, replace(plan(BASE, TARGET, epoch=12), **more))

    assert said_in(following(state), 8, "a", "b") is None


def test_nothing_is_acknowledged_without_a_control_topic() -> None:
    member = under_strategy("sticky")
    refusal = encode_assignment_data(AssignmentData(epoch=3, outcome=Outcome.REFUSED, why="not mine"))

    assert taken_in(member, BASE["a"], refusal, 8) is None


def test_reason_of_any_length_fits_into_the_answer(state: ControlState) -> None:
    topic = "t" * 40_000
    feed(state, plan({}, {"a": {}, "b": {topic: (1,)}}, generation=-1))
    claims = [Joined(member_id=i, topics=[topic], user_data=None) for i in BASE]

    answers = following(state).lead(counts={topic: 4}, members=claims, now_ms=NOW_MS)

    word = assignment_data_of(answers["a"][1])
    assert word.outcome is Outcome.REFUSED
    assert word.why.endswith("ttt")
