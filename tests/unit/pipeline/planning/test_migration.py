"""What a decision makes of brokers that may migrate the group to KIP-848."""

import json
from dataclasses import replace

import pytest

from assignor.protocol.migration import Migration, why_not
from pipeline.planning.facts import AckFacts
from pipeline.planning.values import Decision
from tests.support.planning.facts import NO_GUARDS, RULES
from tests.support.planning.plan_walk import HALFWAY, Walk, walk

VALID_S = RULES.valid_for_ms / 1000


def under(migration: Migration, group: Walk | None = None) -> Walk:
    """The group, where this is now known of migration."""
    group = group or walk()
    group.rules = replace(group.rules, migration=migration)
    return group


def refuse(group: Walk, migration: Migration, *, epoch: int = 1, members: str = "ab") -> None:
    """Let these members refuse the plan for it."""
    group.acks = tuple(
        AckFacts(kind="refused", member_id=name, epoch=epoch, why=why_not(migration)) for name in members
    )


def migration_in(decision: Decision) -> str:
    return str(json.loads(decision.record or "{}")["migration"])


@pytest.mark.parametrize("migration", ["disabled", "possible", "unknown"])
def test_record_says_what_is_known_of_migration(migration: Migration) -> None:
    assert migration_in(under(migration).decide()) == migration


def test_rules_that_say_nothing_are_unknown() -> None:
    assert migration_in(walk().decide()) == "unknown"


@pytest.mark.parametrize(
    ("before", "after"), [("disabled", "possible"), ("disabled", "unknown"), ("unknown", "disabled")]
)
def test_plan_that_is_out_is_published_anew_when_migration_has_changed(
    before: Migration, after: Migration
) -> None:
    group = under(before)
    first = group.decide()

    second = under(after, group).decide(after_s=10)
    third = group.decide(after_s=10)

    assert (second.decided, second.epoch, second.assignment) == ("publish", 2, first.assignment)
    assert migration_in(second) == after
    assert third.decided == "unchanged"


def test_plan_under_way_is_published_anew_from_where_the_group_is() -> None:
    group = under("disabled")
    group.decide()
    group.held = HALFWAY
    group.decide(after_s=10)

    news = under("possible", group).decide(after_s=10)

    assert (news.decided, migration_in(news), len(news.moves)) == ("publish", "possible", 1)


def test_group_that_has_taken_a_plan_is_told_when_migration_has_become_possible() -> None:
    group = under("disabled")
    group.apply(group.decide())
    assert group.decide(after_s=60).decided == "unchanged"

    news = under("possible", group).decide(after_s=60)

    assert (news.decided, news.moves, migration_in(news)) == ("publish", (), "possible")
    assert group.decide(after_s=60).decided == "unchanged"


@pytest.mark.parametrize("migration", ["unknown", "disabled"])
def test_group_that_has_taken_a_plan_is_told_of_nothing_else(migration: Migration) -> None:
    group = under("disabled" if migration == "unknown" else "unknown")
    group.apply(group.decide())
    group.decide(after_s=60)

    assert under(migration, group).decide(after_s=60).decided == "unchanged"


def test_group_whose_leader_applies_plans_is_not_made_to_rebalance_by_news_of_migration() -> None:
    group = under("disabled")
    group.assignor = "lagwise"
    group.decide()

    assert under("possible", group).decide(after_s=10).decided == "unchanged"


def test_news_waits_while_a_partition_is_between_two_members() -> None:
    group = under("disabled")
    group.decide()
    group.held = {"a": {"t": (0,)}, "b": {"t": (2, 3)}}

    assert under("possible", group).decide(after_s=10).decided == "unchanged"


def test_plan_that_all_refuse_for_migration_is_refused_and_not_published_again() -> None:
    group = under("possible")
    group.decide()
    refuse(group, "possible")

    after = [group.decide(after_s=VALID_S) for _ in range(5)]

    assert after[0].plan is not None
    assert (after[0].plan.status, after[0].plan.why) == (
        "refused",
        f"member a refused it: {why_not('possible')}",
    )
    assert [decision.decided for decision in after] == ["unchanged"] * 5
    reason = "held back by migration: migration to KIP-848 is possible, and members refuse plans until it is disabled; "
    assert all((decision.reason or "").startswith(reason) for decision in after)


def test_plan_that_was_refused_for_another_reason_is_published_again() -> None:
    group = under("possible")
    group.decide()
    refuse(group, "possible")
    group.acks = (*group.acks[:1], replace(group.acks[1], why="not a member of the plan"))

    assert group.decide(after_s=VALID_S).decided == "publish"


def test_plan_is_published_when_other_members_are_there() -> None:
    group = under("possible")
    group.decide()
    refuse(group, "possible")
    group.decide(after_s=10)

    group.held = {"a": group.held["a"], "c": group.held["b"]}

    assert group.decide(after_s=VALID_S).decided == "publish"


def test_plan_is_published_when_an_operator_asks_for_it_in_spite_of_refusals() -> None:
    group = under("possible")
    group.decide()
    refuse(group, "possible")
    assert group.decide(after_s=VALID_S).decided == "unchanged"

    group.order(triggered_at_ms=group.now_ms)

    assert group.decide(after_s=10).decided == "publish"


def test_plan_that_was_refused_comes_back_at_once_when_migration_is_known_to_be_disabled() -> None:
    group = under("unknown")
    group.rules = replace(
        group.rules, guards=replace(NO_GUARDS, cooldown_ms=3_600_000, cooldown_max_ms=3_600_000)
    )
    first = group.decide()
    refuse(group, "unknown")
    group.decide(after_s=10)

    again = under("disabled", group).decide(after_s=10)

    assert (again.decided, again.epoch, again.assignment) == ("publish", 2, first.assignment)
    assert migration_in(again) == "disabled"


def test_refusal_that_is_long_ago_opens_no_guard() -> None:
    group = under("unknown")
    group.rules = replace(
        group.rules, guards=replace(NO_GUARDS, cooldown_ms=36_000_000, cooldown_max_ms=36_000_000)
    )
    group.decide()
    refuse(group, "unknown")
    group.decide(after_s=10)

    late = under("disabled", group).decide(after_s=VALID_S)

    assert (late.decided, (late.reason or "").split(":")[0]) == ("unchanged", "held back by cooldown")
