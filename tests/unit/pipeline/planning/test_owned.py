"""What members own decides whether a plan can be made: each partition by one of them, and all of them known."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from assignor.protocol.commands import Orders
from pipeline.planning.facts import GroupFacts, Rules
from pipeline.planning.state import FRESH
from pipeline.planning.values import Decision
from tests.support.planning.alone import decide
from tests.support.planning.facts import NOW_MS, RULES, group, kip848_group, partitions


def decided(facts: GroupFacts, rules: Rules = RULES) -> Decision:
    return decide(facts, partitions([900, 800, 10, 0]), rules, None, FRESH, now_ms=NOW_MS)


def test_partitions_that_the_leader_gave_to_several_members_stop_the_plan() -> None:
    """An assignor that broadcasts: as partitions without an owner they would pass pins and guards."""
    pinned = Orders(cluster="local", group="g", pinned={"t": ()}, at_ms=NOW_MS)
    decision = decided(group({"a": {"t": (0, 1, 1)}, "b": {"t": (1, 2, 3)}}, assignor="all", orders=pinned))

    assert (decision.decided, decision.record) == ("abstain", None)
    assert (decision.reason or "").startswith(
        "the group's assignor all has given t-1 to several members; only groups"
    )


def test_partition_that_the_leader_gave_to_nobody_is_given_to_a_member() -> None:
    decision = decided(group({"a": {"t": (0, 1)}, "b": {"t": (2,)}}))

    assert decision.decided == "publish"
    assert ("t", 3, None) in {(m.topic, m.partition, m.from_member) for m in decision.moves}


def test_claim_on_an_impossible_partition_is_ignored() -> None:
    decision = decided(group({"a": {"t": (0, 1, -1)}, "b": {"t": (2, 3)}}))

    assert decision.assignment == decided(group({"a": {"t": (0, 1)}, "b": {"t": (2, 3)}})).assignment


def test_member_that_reads_an_unobserved_topic_stops_the_plan() -> None:
    decision = decided(group({"a": {"t": (0, 1), "hidden": (0,)}, "b": {"t": (2, 3)}}))

    assert "hidden" in (decision.reason or "")


@pytest.mark.parametrize("build", [group, kip848_group])
@pytest.mark.parametrize("partition", [4, 2**31 - 1])
def test_partition_that_a_member_owns_and_lagwise_does_not_know_stops_the_plan(
    build: Callable[..., GroupFacts], partition: int
) -> None:
    """A plan without it would take it from its owner and give it to nobody."""
    facts = build({"a": {"t": (0, 1)}, "b": {"t": (2, 3, partition)}})

    decision = decided(facts, replace(RULES, broker_follows=True))

    assert (decision.decided, decision.record) == ("abstain", None)
    assert decision.reason == (
        f"a member owns t-{partition}, and the last partition of topic t that brokers list is 3; "
        "planning resumes when brokers and members agree"
    )
