"""What decisions remember of those before them, and what is sent late."""

from dataclasses import replace

import pytest

from pipeline.planning.memory import PlanInTopic, PlanMemory, PlanRecord, WrittenPlan
from pipeline.planning.state import to_json
from pipeline.planning.values import Published, next_epoch
from tests.support.planning.facts import NOW_MS
from tests.support.planning.plan_walk import HALFWAY, walk

PLAN = Published(epoch=3, target_hash="target", base_hash="base", valid_until_ms=NOW_MS + 60_000)
EXPIRED = replace(PLAN, valid_until_ms=NOW_MS - 1)
ONLY_ITS_EPOCH = Published(epoch=3, target_hash="", base_hash="", valid_until_ms=0)
ON_TOPIC_UNTIL_MS = NOW_MS + 40_000


def connected(
    plan: WrittenPlan, *, topic_epoch: int | None, holds: bool = True
) -> tuple[dict[str, WrittenPlan], dict[str, Published]]:
    """What is still to be sent, and what is known, when the table holds the plan and the topic that epoch."""
    memory = PlanMemory()
    memory.on_published({"g": plan.plan})
    in_topic = {} if topic_epoch is None else {"g": PlanInTopic(topic_epoch, ON_TOPIC_UNTIL_MS)}
    memory.on_connected(in_topic, {"g": plan} if holds else {})
    return memory.unsent, memory.published


@pytest.mark.parametrize("topic_epoch", [None, 2])
def test_plan_that_is_not_on_the_topic_is_still_to_be_sent(topic_epoch: int | None) -> None:
    written = WrittenPlan(plan=PLAN, value="{}")
    unsent, known = connected(written, topic_epoch=topic_epoch)

    assert unsent == {"g": written}
    assert written.record("g") == PlanRecord("g", 3, "{}")
    assert known == {"g": PLAN}


def test_plan_that_is_on_the_topic_is_not_sent_again() -> None:
    unsent, known = connected(WrittenPlan(plan=PLAN, value="{}"), topic_epoch=3)

    assert (unsent, known) == ({}, {"g": PLAN})


def test_plan_that_has_expired_unsent_is_not_sent_and_readers_hold_the_one_before() -> None:
    unsent, known = connected(WrittenPlan(plan=EXPIRED, value="{}"), topic_epoch=2, holds=False)

    assert (unsent, known) == ({}, {"g": replace(ONLY_ITS_EPOCH, valid_until_ms=ON_TOPIC_UNTIL_MS)})


def test_plan_that_only_the_topic_knows_leaves_its_epoch_and_its_validity() -> None:
    unsent, known = connected(WrittenPlan(plan=PLAN, value="{}"), topic_epoch=9)

    assert (unsent, known) == ({}, {"g": replace(ONLY_ITS_EPOCH, epoch=9, valid_until_ms=ON_TOPIC_UNTIL_MS)})


def test_epoch_that_neither_table_nor_topic_has_any_more_is_not_used_again() -> None:
    memory = PlanMemory(published={"g": PLAN})

    memory.on_connected({}, {})

    assert memory.unsent == {}
    assert memory.published == {"g": ONLY_ITS_EPOCH}


def test_newest_epoch_is_that_of_whichever_group_has_the_highest() -> None:
    memory = PlanMemory(published={"g": PLAN})
    assert PlanMemory().newest_epoch is None
    assert memory.newest_epoch == ("g", 3)

    memory.on_connected({"g": PlanInTopic(3), "h": PlanInTopic(9)}, {})

    assert memory.newest_epoch == ("h", 9)


@pytest.mark.parametrize(
    ("published", "least", "expected"),
    [(None, 1, 1), (PLAN, 1, 4), (PLAN, 4, 4), (PLAN, 1_700_000_000, 1_700_000_000), (None, 0, 1)],
)
def test_next_epoch_is_above_all_that_are_known_and_not_below_the_clock(
    published: Published | None, least: int, expected: int
) -> None:
    assert next_epoch(published, least=least) == expected


def test_withdrawal_of_what_the_topic_does_not_have_is_not_sent_and_leaves_its_epoch() -> None:
    memory = PlanMemory(published={"g": PLAN})
    withdrawn = WrittenPlan(plan=PLAN, value=None)

    memory.on_connected({}, {"g": withdrawn})

    assert memory.unsent == {}
    assert memory.published["g"] == ONLY_ITS_EPOCH


def test_what_a_batch_that_runs_again_wrote_down_is_to_be_sent_unless_it_was() -> None:
    memory = PlanMemory(published={"sent": PLAN, "older": replace(PLAN, epoch=2)})
    plans = {group: WrittenPlan(plan=PLAN, value="{}") for group in ("sent", "older", "new")}

    memory.on_replayed(plans)

    assert set(memory.unsent) == {"older", "new"}


def test_what_is_not_sent_late_leaves_its_epoch_and_its_validity_for_a_plan_before_it_that_readers_hold() -> (
    None
):
    plans = {group: WrittenPlan(plan=PLAN, value="{}") for group in ("g", "paused")}
    memory = PlanMemory(unsent=plans | {"later": plans["g"]})

    memory.on_sent_late(plans, {"g": plans["g"]})

    dropped = replace(ONLY_ITS_EPOCH, valid_until_ms=PLAN.valid_until_ms)
    assert (set(memory.unsent), memory.published) == ({"later"}, {"g": PLAN, "paused": dropped})


def test_plan_that_was_replaced_before_it_was_sent_is_not_to_be_sent_any_more() -> None:
    memory = PlanMemory(unsent={group: WrittenPlan(plan=PLAN, value="{}") for group in ("g", "other")})

    memory.on_published({"g": replace(PLAN, epoch=4)})

    assert set(memory.unsent) == {"other"}


def test_plan_is_overtaken_by_a_newer_one_of_its_group_only() -> None:
    memory = PlanMemory(published={"g": PLAN, "h": replace(PLAN, epoch=4)})
    plans = {group: WrittenPlan(plan=PLAN, value="{}") for group in ("g", "h", "new")}

    assert set(memory.not_overtaken(plans)) == {"g", "new"}


def test_group_that_took_a_plan_and_is_in_another_generation_does_not_wait_for_its_turn() -> None:
    group = walk()
    group.decide()
    not_taken = to_json(group.state)
    group.held = HALFWAY
    group.decide(after_s=60)
    memory = PlanMemory(states={"took": to_json(group.state), "not": not_taken})

    assert memory.rebalanced({"took": 5, "not": 5, "new": 5}) == {"took"}
    assert memory.rebalanced({"took": 4, "not": 4}) == set()
    assert memory.rebalanced({"took": None}) == set()


def test_all_groups_are_decided_about_once_per_interval() -> None:
    memory = PlanMemory(evaluated_at_ms=NOW_MS)

    assert not memory.is_evaluation_due(NOW_MS + 59_999, interval_ms=60_000)
    assert memory.is_evaluation_due(NOW_MS + 60_000, interval_ms=60_000)


def test_all_groups_are_decided_about_though_the_clock_of_the_batches_stands_still() -> None:
    memory = PlanMemory(evaluated_at_ms=NOW_MS, evaluated_at_s=100.0)

    assert not memory.is_evaluation_due(NOW_MS + 1, interval_ms=60_000, now_s=159.9)
    assert memory.is_evaluation_due(NOW_MS + 2, interval_ms=60_000, now_s=160.0)
