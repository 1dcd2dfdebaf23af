"""Publish, leave alone or abstain: the decision about one group."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.model.group import LEAST_CAPACITY
from assignor.protocol.control import decode
from pipeline.lag.lag import UNKNOWN
from pipeline.planning.facts import GroupFacts, MemberFacts, PartitionFacts, Rules
from pipeline.planning.state import FRESH
from pipeline.planning.values import Decision, Published
from tests.support.planning.alone import decide
from tests.support.planning.facts import NOW_MS, RULES, draining, group, partitions

BURIED = {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}
LAGS: list[int | None] = [900, 800, 10, 0]


def out(decision: Decision, **changes: object) -> Published:
    """The plan that `decision` published."""
    assert decision.epoch is not None
    assert decision.target_hash is not None
    assert decision.base_hash is not None
    assert decision.valid_until_ms is not None
    plan = Published(
        epoch=decision.epoch,
        target_hash=decision.target_hash,
        base_hash=decision.base_hash,
        valid_until_ms=decision.valid_until_ms,
    )
    return replace(plan, **changes)  # type: ignore[arg-type]  # the tests know their types


def decided(
    facts: GroupFacts | None = None,
    lags: PartitionFacts | None = None,
    rules: Rules = RULES,
    published: Published | None = None,
    now_ms: int = NOW_MS,
) -> Decision:
    """Of a driver that has only just started and knows of its plans what the control topic says."""
    return decide(facts or group(BURIED), lags or partitions(LAGS), rules, published, FRESH, now_ms=now_ms)


def test_first_plan_has_epoch_one_and_the_whole_target() -> None:
    decision = decided()

    assert (decision.decided, decision.epoch) == ("publish", 1)
    assert decision.assignment == {"a": {"t": "0,3"}, "b": {"t": "1-2"}}
    record = decode((decision.record or "").encode())
    assert {name: member.target for name, member in record.members.items()} == {
        "a": {"t": (0, 3)},
        "b": {"t": (1, 2)},
    }
    assert {name: member.base for name, member in record.members.items()} == {
        "a": {"t": (0, 1)},
        "b": {"t": (2, 3)},
    }
    assert [(m.partition, m.from_member, m.to_member) for m in record.moves] == [(1, "a", "b"), (3, "b", "a")]
    assert (record.base_generation, record.base_protocol, record.why.lag) == (4, "range", 1710)
    assert record.valid_until_ms == NOW_MS + RULES.valid_for_ms


def test_same_facts_give_the_same_record_byte_for_byte() -> None:
    backwards = group(dict(reversed(BURIED.items())))

    assert decided().record == decided(backwards).record


def test_epoch_rises_above_the_one_published() -> None:
    published = Published(epoch=41, target_hash="", base_hash="", valid_until_ms=0)

    assert decided(published=published).epoch == 42


def test_plan_that_still_says_so_is_not_published_again() -> None:
    first = decided()

    decision = decided(
        published=out(first), now_ms=NOW_MS + 1000, lags=partitions(LAGS, observed_at_ms=NOW_MS + 1000)
    )

    assert (decision.decided, decision.epoch, decision.record) == ("unchanged", None, None)
    assert "epoch 1" in (decision.reason or "")


def test_plan_still_right_is_published_again_before_it_expires() -> None:
    later = NOW_MS + RULES.valid_for_ms // 2

    decision = decided(published=out(decided()), now_ms=later, lags=partitions(LAGS, observed_at_ms=later))

    assert (decision.decided, decision.epoch) == ("publish", 2)


def test_new_generation_is_a_new_base_and_publishes() -> None:
    decision = decided(group(BURIED, generation=5), published=out(decided()))

    assert (decision.decided, decision.epoch) == ("publish", 2)


def test_group_that_has_its_target_is_left_alone() -> None:
    decision = decided(group({"a": {"t": (0, 3)}, "b": {"t": (1, 2)}}))

    assert (decision.decided, decision.moves) == ("unchanged", ())


def test_dry_run_has_figures_but_neither_epoch_nor_record() -> None:
    decision = decided(rules=replace(RULES, dry_run=True))

    assert (decision.decided, decision.epoch, decision.record) == ("dry_run", None, None)
    assert len(decision.moves) == 2
    assert decision.figures.imbalance_after is not None
    assert decision.figures.imbalance_before is not None
    assert decision.figures.imbalance_after < decision.figures.imbalance_before


def test_drain_times_come_from_members_seen_draining_a_backlog() -> None:
    lags = draining(partitions(LAGS), [10.0, 10.0, 20.0, 0.0])

    decision = decided(lags=lags)

    assert decision.figures.drain_s_before == pytest.approx(1700 / 20)
    assert decision.figures.drain_s_after == pytest.approx(900 / 20)
    assert decision.figures.drain_s_bound is not None
    assert decision.figures.drain_s_bound <= decision.figures.drain_s_after


def test_member_that_keeps_up_counts_as_fast_as_those_with_a_backlog() -> None:
    lags = draining(partitions(LAGS), [10.0, 10.0, 1.5, 0.0])

    decision = decided(lags=lags)

    assert decision.figures.drain_s_after == pytest.approx(900 / 20)


def test_member_that_was_never_seen_to_drain_counts_as_fast_as_the_others() -> None:
    lags = draining(partitions(LAGS), [10.0, 10.0, np.nan, np.nan])

    decision = decided(lags=lags)

    assert decision.figures.drain_s_before == pytest.approx(1700 / 20)
    assert decision.figures.drain_s_after == pytest.approx(900 / 20)


def test_member_that_drained_once_and_stands_still_is_slow() -> None:
    lags = draining(partitions(LAGS), [10.0, 10.0, np.finfo(np.float64).tiny, 0.0])

    assert decided(lags=lags).figures.drain_s_before == pytest.approx(10 / LEAST_CAPACITY)


def test_members_stuck_for_days_are_slow_and_no_fault() -> None:
    """A moving average of nothing halves for ever; dividing by what is left of it gives infinity."""
    stuck = replace(draining(partitions(LAGS), [1e-310] * 4), arrival_rate=np.full(4, 1000.0))

    decision = decided(lags=stuck, rules=replace(RULES, strategy="lag-sticky", options={}))

    assert decision.decided == "unchanged"
    assert "its members hardly drain, are they stuck?" in (decision.reason or "")


def test_what_a_member_holds_and_does_not_read_is_never_drained() -> None:
    facts = group(BURIED)
    stranger = replace(facts.members[1], topics=())
    lags = draining(partitions(LAGS), [10.0, 10.0, 20.0, 0.0])

    decision = decided(replace(facts, members=(facts.members[0], stranger)), lags=lags)

    assert (decision.figures.drain_s_before, decision.figures.capacity_known) == (None, True)
    assert decision.figures.drain_s_after == pytest.approx(1710 / 20)
    assert {(m.partition, m.from_member, m.to_member) for m in decision.moves} == {
        (2, "b", "a"),
        (3, "b", "a"),
    }


def test_no_drain_rate_gives_no_times() -> None:
    decision = decided()

    assert (
        decision.figures.drain_s_before,
        decision.figures.drain_s_after,
        decision.figures.drain_s_bound,
        decision.figures.capacity_known,
    ) == (None, None, None, False)


def test_never_committed_partition_weighs_its_whole_log_under_earliest() -> None:
    lags = partitions([None, 10, 10, 10])

    assert (
        decided(lags=lags).moves != decided(lags=lags, rules=replace(RULES, auto_offset_reset="latest")).moves
    )


_ABSTENTIONS = {
    "excluded": ({}, {"exclude": True}, "[[plan.groups]] excludes the group"),
    "provisional": ({"provisional": "not read yet"}, {}, "provisional: not read yet"),
    "only commits": ({"group_type": None, "members": ()}, {}, "assign()"),
    "share group": ({"group_type": "share"}, {}, "share"),
    "streams group": ({"group_type": "streams"}, {}, "streams"),
    "no members": ({"members": ()}, {}, "no members"),
    "connect": ({"protocol_type": "connect"}, {}, "'connect'"),
    "Kafka Streams": ({"assignor": "stream"}, {}, "tasks"),
    "not stable": ({"state": "Empty"}, {}, "not stable (state Empty)"),
    "no generation": ({"generation": None}, {}, "generation of the group is unknown"),
    "unknown strategy option": ({}, {"options": {"scop": "topic"}}, "scop"),
    "record too large": ({}, {"max_record_bytes": 100}, "limit 100"),
}


@pytest.mark.parametrize(("of_group", "of_rules", "reason"), _ABSTENTIONS.values(), ids=_ABSTENTIONS)
def test_abstains_and_says_why(of_group: dict[str, object], of_rules: dict[str, object], reason: str) -> None:
    decision = decided(group(BURIED, **of_group), rules=replace(RULES, **of_rules))  # type: ignore[arg-type]  # the tests know their types

    assert (decision.decided, decision.epoch, decision.record) == ("abstain", None, None)
    assert reason in (decision.reason or "")


def test_member_with_unreadable_subscription_is_named() -> None:
    facts = group(BURIED)
    broken = MemberFacts(member_id="c", error="truncated (at byte 3)")

    decision = decided(replace(facts, members=(*facts.members, broken)))

    assert (decision.reason or "").startswith(
        "the subscription of member c cannot be decoded: truncated (at byte 3); "
    )


def test_log_offsets_that_were_just_not_answered_are_no_ground_for_a_plan_however_young() -> None:
    asked = replace(
        partitions([0, 500_000, 0, 0]), unanswered=[None, "broker 2 (b:9092) does not answer", None, "x"]
    )

    decision = decided(group(BURIED), asked)

    assert decision.decided == "abstain"
    assert decision.reason == (
        "no broker returned the log offsets of t-1 and 1 other partition(s): broker 2 (b:9092) does not answer"
    )


LATE = {"a": {"t": (0, 1, 2)}, "b": {"t": (3,)}}


@pytest.mark.parametrize(
    "old",
    [
        {"unanswered": [None, None, None, "LEADER_NOT_AVAILABLE"]},
        {"observed_at_ms": np.array([NOW_MS] * 3 + [NOW_MS - 600_000])},
    ],
    ids=["without an answer", "stale"],
)
def test_partition_without_a_leader_stays_and_its_last_known_lag_is_load_of_its_owner(
    old: dict[str, object],
) -> None:
    """Were b taken for idle, it would get one of a's three."""
    sticky = replace(RULES, strategy="lag-sticky")
    busy, idle = (
        replace(partitions([400_000, 400_000, 400_000, last]), drain_rate=np.full(4, 100.0), **old)  # type: ignore[arg-type]  # the tests know their types
        for last in (900_000, 0)
    )

    kept, helped = (decided(group(LATE), asked, rules=sticky) for asked in (busy, idle))

    assert kept.moves == ()
    assert [(move.from_member, move.to_member) for move in helped.moves] == [("a", "b")]
    for decision in (kept, helped):
        assert "t-3" in (decision.reason or "")
        assert "they stay with their owners" in (decision.reason or "")


@pytest.mark.parametrize(
    ("commits", "is_unknown"),
    [
        ({}, True),
        # It was read until its leader was lost; then nobody read it, and a member repeats its commit.
        ({"commit_ahead_s": np.array([0.0, 0.0, 0.0, 90.0])}, False),
        ({"commit_rate": np.array([100.0, 100.0, 100.0, 0.0])}, False),
    ],
    ids=["reads on", "lost a moment ago", "commit repeated"],
)
def test_partition_in_which_the_group_reads_on_without_an_answer_to_lagwise_is_no_idle_one(
    commits: dict[str, object], is_unknown: bool
) -> None:
    """Only lagwise cannot reach the broker: b's lag, shown as 0, is unknown."""
    asked = replace(
        partitions([400_000, 400_000, 400_000, -1]),
        drain_rate=np.full(4, 100.0),
        unanswered=[None, None, None, "broker 2 (b:9092) does not answer"],
        commit_rate=np.full(4, 100.0),
        commit_ahead_s=np.array([0.0, 0.0, 0.0, 91.0]),
    )

    decision = decided(
        group(LATE),
        replace(asked, **commits),
        rules=replace(RULES, strategy="lag-sticky"),  # type: ignore[arg-type]  # the tests know their types
    )

    assert (decision.decided == "abstain") is is_unknown
    assert "no broker returned the log offsets of t-3: broker 2 (b:9092) does not answer" in str(
        decision.reason
    )


def test_partition_without_a_leader_is_not_moved_off_a_late_member() -> None:
    sticky = replace(RULES, strategy="lag-sticky")
    asked = replace(
        partitions([900_000, 100, 100, 0]),
        drain_rate=np.full(4, 100.0),
        unanswered=["LEADER_NOT_AVAILABLE", None, None, None],
    )

    decision = decided(group(LATE), asked, rules=sticky)

    assert 0 not in {move.partition for move in decision.moves}
    assert "no broker returned the log offsets of t-0: LEADER_NOT_AVAILABLE" in (decision.reason or "")


def test_stale_log_offsets_are_no_ground_for_a_plan() -> None:
    old = NOW_MS - RULES.max_staleness_ms

    assert decided(lags=partitions(LAGS, observed_at_ms=old)).decided == "publish"
    assert "t-0 and 3 other partition(s)" in (
        decided(lags=partitions(LAGS, observed_at_ms=old - 1)).reason or ""
    )


def test_unknown_log_end_is_no_ground_for_a_plan() -> None:
    lags = partitions(LAGS)
    lags.log_end[2] = UNKNOWN

    assert "the log end offset of t-2 is unknown" in (decided(lags=lags).reason or "")


def test_commit_of_another_topic_of_that_name_is_no_ground_for_a_plan() -> None:
    lags = replace(partitions(LAGS), incomparable=np.array([False, True, False, True]))

    reason = decided(lags=lags).reason or ""

    assert "the lag of t-1 and 1 other partition(s) is unknown" in reason
    assert "deleted topic of the same name" in reason


def test_topic_without_partitions_stops_the_plan() -> None:
    decision = decided(group({"a": {}, "b": {}}), lags=partitions([]))

    assert "no partitions" in (decision.reason or "")


def test_gap_in_partition_numbers_stops_the_plan() -> None:
    lags = replace(partitions(LAGS), partition=np.array([0, 1, 2, 4]))

    reason = decided(group({"a": {}, "b": {}}), lags=lags).reason or ""

    assert reason.startswith("the partition numbers of topic t are not contiguous")


def test_unequal_subscriptions_are_refused_by_the_constrained_strategy_with_a_way_out() -> None:
    facts = group(BURIED)
    reader = MemberFacts(member_id="c", topics=("u",))
    lags = partitions(LAGS)
    both = replace(
        lags,
        topic=[*lags.topic, "u"],
        **{
            name: np.append(getattr(lags, name), getattr(lags, name)[:1])
            for name in PartitionFacts.__slots__
            if name not in {"topic", "topics", "incomparable", "unanswered"}
        },
    )

    decision = decided(
        replace(facts, members=(*facts.members, reader)),
        lags=both,
        rules=replace(RULES, strategy="constrained-cooperative-sticky"),
    )

    assert decision.decided == "abstain"
    assert "cooperative-sticky" in (decision.reason or "")
