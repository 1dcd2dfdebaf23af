"""The leader's rule: a plan as a whole, or the strategy."""

import pytest

from assignor.clients.plugin.dialect import Joined
from assignor.clients.plugin.leader import LeaderDecision, decide
from assignor.evaluation import validity
from assignor.model.assignment import Unassigned
from assignor.protocol.control import ControlRecord
from assignor.strategies.registry import strategy
from tests.support.assignors.groups import by_name
from tests.support.followers.plans import joined, plan

COUNTS = {"t": 4}
BASE = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
TARGET = {"a": {"t": (0,)}, "b": {"t": (1, 2, 3)}}
MEMBERS = [joined("a", ["t"], BASE["a"]), joined("b", ["t"], BASE["b"])]


def decided(
    members: list[Joined],
    record: ControlRecord | None,
    *,
    counts: dict[str, int] | None = None,
    name: str = "sticky",
) -> LeaderDecision:
    decision = decide(
        counts=counts or COUNTS,
        members=members,
        strategy=strategy(name),
        plan=record,
    )
    validity.check(decision.group, decision.target)
    return decision


def handed_out(decision: LeaderDecision) -> dict[str, list[str]]:
    return by_name(decision.group, decision.step)


def test_plan_that_fits_is_applied_as_a_whole() -> None:
    decision = decided(MEMBERS, plan(BASE, TARGET, epoch=3))

    assert handed_out(decision) == {"a": ["t-0"], "b": ["t-1", "t-2", "t-3"]}
    assert (decision.plan_epoch, decision.why) == (3, "the plan fits")


def test_plan_goes_on_to_fit_once_it_was_applied() -> None:
    members = [joined(name, ["t"], TARGET[name], generation=8) for name in TARGET]

    assert decided(members, plan(BASE, TARGET)).plan_epoch == 1


@pytest.mark.parametrize(
    ("members", "record", "why"),
    [
        pytest.param(
            [*MEMBERS, joined("c", ["t"])],
            plan(BASE, TARGET),
            "plan 1 is for other members, 1 differ",
            id="a member more",
        ),
        pytest.param(
            MEMBERS[:1], plan(BASE, TARGET), "plan 1 is for other members, 1 differ", id="a member less"
        ),
        pytest.param(
            MEMBERS,
            plan(BASE, TARGET, generation=8),
            "plan 1 is of generation 8, no member knows one after 7",
            id="a later generation",
        ),
        pytest.param(
            MEMBERS,
            plan(BASE, {**TARGET, "a": {"t": (0, 4)}}),
            "plan 1 places partitions that are not there",
            id="a partition too many",
        ),
        pytest.param(
            MEMBERS,
            plan(BASE, {**TARGET, "a": {}}),
            "plan 1 does not give exactly one place to t-0",
            id="a partition missing",
        ),
        pytest.param(
            MEMBERS,
            plan(BASE, {**TARGET, "a": {"t": (0, 3)}}),
            "plan 1 does not give exactly one place to t-3",
            id="a partition twice",
        ),
        pytest.param(
            MEMBERS,
            plan(BASE, {**TARGET, "a": {}}, unassigned={"feels wrong": {"t": (0,)}}),
            "plan 1 does not give exactly one place to t-0",
            id="a reason not known here",
        ),
        pytest.param(
            [joined("a", ["t"], {"t": (0, 1, 2)}), joined("b", ["t"], {"t": (3,)})],
            plan(BASE, TARGET),
            "plan 1 is neither from nor for the owner of t-2",
            id="an owner of neither",
        ),
        pytest.param(
            [joined("a", ["t"], {"t": (0, 1, 2)}), joined("b", ["t"], BASE["b"])],
            plan(BASE, TARGET),
            "plan 1 meets two claims of one generation on t-2",
            id="a contested partition",
        ),
        pytest.param(MEMBERS, None, "no plan", id="no plan"),
    ],
)
def test_plan_that_does_not_fit_leaves_the_group_to_the_strategy(
    members: list[Joined], record: ControlRecord | None, why: str
) -> None:
    decision = decided(members, record)

    assert (decision.plan_epoch, decision.why) == (None, f"sticky: {why}")
    assert by_name(decision.group, decision.target) == by_name(
        decision.group, strategy("sticky").assign(decision.group, {})
    )


def test_plan_does_not_give_a_partition_to_a_member_that_does_not_read_it() -> None:
    members = [joined("a", ["t"], BASE["a"]), joined("b", ["u"])]

    decision = decided(members, plan({}, TARGET), counts={"t": 4, "u": 0})

    assert decision.why == "sticky: plan 1 gives to a member that does not read it t-1"


def test_what_no_join_has_a_place_for_stays_out_with_its_reason() -> None:
    left_out = {Unassigned.BEYOND_JOIN.words: {"t": (0,)}}

    decision = decided(MEMBERS, plan(BASE, {**TARGET, "a": {}}, unassigned=left_out))

    assert decision.plan_epoch == 1
    assert decision.target.why.tolist() == [Unassigned.BEYOND_JOIN, 0, 0, 0]


def test_partition_that_a_cooperative_member_holds_waits_one_round() -> None:
    held = [joined(name, ["t"], BASE[name], held=True) for name in BASE]
    revoked = [joined("a", ["t"], {"t": (0,)}, generation=8, held=True), held[1]]

    first, second = decided(held, plan(BASE, TARGET)), decided(revoked, plan(BASE, TARGET))

    assert handed_out(first) == {"a": ["t-0"], "b": ["t-2", "t-3"]}
    assert handed_out(second) == {"a": ["t-0"], "b": ["t-1", "t-2", "t-3"]}


def test_partition_that_an_eager_member_only_remembers_waits_for_nobody() -> None:
    members = [MEMBERS[0], joined("b", ["t"], BASE["b"], held=True)]

    assert handed_out(decided(members, plan(BASE, TARGET)))["b"] == ["t-1", "t-2", "t-3"]


def test_join_plan_hands_partition_numbers_over_whole() -> None:
    counts = {"t": 1, "u": 1}
    base = {"a": {"t": (0,)}, "b": {}}
    target = {"a": {}, "b": {"t": (0,), "u": (0,)}}
    members = [joined(name, ["t", "u"], base[name], held=True) for name in base]

    decision = decided(members, plan(base, target, strategy="sticky-stream-join"), counts=counts)

    assert handed_out(decision) == {"a": [], "b": []}


def test_strategy_for_equal_subscriptions_gives_way_to_sticky() -> None:
    members = [joined("a", ["t"]), joined("b", ["t", "u"])]

    decision = decided(members, None, counts={"t": 1, "u": 1}, name="constrained-cooperative-sticky")

    assert decision.why.startswith("sticky: constrained-cooperative-sticky needs")


def test_newest_epoch_of_any_claim_is_told() -> None:
    members = [joined("a", ["t"], {"t": (0,)}, generation=4), joined("b", ["t"], generation=9)]

    assert decided(members, None).generation == 9
