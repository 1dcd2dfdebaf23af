import inspect
from collections.abc import Callable

import pytest

from pipeline.planning import broker_reasons, reasons
from pipeline.planning.life import order_reasons
from tests.support.operate.message_form import faults

_SAMPLES: dict[Callable[..., str], list[tuple[object, ...]]] = {
    reasons.provisional: [("partition 9 of __consumer_offsets is not read to its end yet",)],
    reasons.broker_assigns: [("share",)],
    reasons.not_consumers: [("connect",), (None,)],
    reasons.not_stable: [("PreparingRebalance",), (None,)],
    reasons.paused: [("eva@desk", "INC-4711", "billing"), ("eva@desk", "", "billing")],
    reasons.unreadable_subscription: [("member-1", "truncated (at byte 3)")],
    reasons.given_to_several: [("invoices-3", 0, "broadcast"), ("invoices-3", 2, None)],
    reasons.unlisted_topic: [("invoices",)],
    reasons.unlisted_partition: [("invoices-3", "invoices", 2)],
    reasons.log_end_unknown: [("invoices-3", 0), ("invoices-3", 2)],
    reasons.log_offsets_stale: [("invoices-3", 0, 90), ("invoices-3", 2, 90)],
    reasons.log_offsets_unanswered: [("invoices-3", 2, "broker 2 (b:9092) does not answer")],
    reasons.commit_of_deleted_topic: [("invoices-3", 0), ("invoices-3", 2)],
    reasons.lag_unknown: [("invoices-3",)],
    reasons.partitions_not_contiguous: [("invoices",)],
    reasons.planning_failed: [(KeyError("epoch"),)],
    reasons.task_failed: [(3,)],
    order_reasons.trigger_ignored: [("2026-01-31T12:00:00.000Z",)],
    order_reasons.awaiting_approval: [("2026-01-31T12:00:00.000Z", "billing")],
    order_reasons.approved: [("ann@desk", "INC-4711"), ("ann@desk", "")],
    order_reasons.approval_refused: [("ann@desk", reasons.EXPIRED_WAITING)],
    order_reasons.published_already: [(7,)],
    order_reasons.other_plan_waits: [("3f2a9c1d0e4b5a67", "91bc9c1d0e4b5a67")],
    reasons.loses_ground: [("member-1", (0, 1200, 2400, 3600))],
    reasons.less_behind: [(2_000_000, 1200)],
    reasons.taken_back: [(7, reasons.loses_ground("member-1", (0, 1200, 2400, 3600)))],
    reasons.stands_still: [(("member-1",),), (("member-1", "member-2"),)],
    reasons.costs_more: [
        ((("invoices-3", 6.04),),),
        (tuple((f"invoices-{n}", 3.0) for n in range(9)),),
    ],
    reasons.withdrawn: [(reasons.NOW_PINNED,)],
    reasons.step: [(0, 150, 0.1), (30, 150, 0.1)],
    reasons.stays_while_old: [("no broker returned the log offsets of t-3: LEADER_NOT_AVAILABLE",)],
    reasons.waiting: [(7, True, 12, 20), (7, False, 0, 20)],
    reasons.still_current: [(7,)],
    reasons.held_back: [(reasons.guard_confirmations(1, 2),)],
    reasons.guard_settle: [(7, 2000, 30_000)],
    reasons.guard_lag: [(1772, 2000)],
    reasons.guard_lag_seconds: [(3.0, 10_000), (None, 10_000)],
    reasons.guard_price: [(320.4, 300_000, 1_282_000)],
    reasons.guard_moves: [(5, 6, 3, 0.5)],
    reasons.guard_improvement: [(0.1,)],
    reasons.guard_cooldown: [(600_000, 1_200_000, 0), (600_000, 120_000, 3)],
    reasons.guard_headroom: [(0.031,)],
    reasons.guard_probation: [(1_200_000, 1), (1_200_000, 3)],
    reasons.guard_effect: [(7,)],
    reasons.guard_effect_works: [(7,)],
    reasons.guard_effect_unseen: [(7,)],
    reasons.guard_effect_hurt: [(7_200_000,)],
    reasons.guard_effect_rests: [(7, 240_000)],
    reasons.guard_confirmations: [(1, 2)],
    reasons.brought_home: [(3, 300), (3, None)],
    reasons.guard_migration: [("possible",), ("unknown",)],
    reasons.all_made: [(20,)],
    reasons.partly_made: [(12, 20, reasons.EXPIRED)],
    reasons.refused: [("member-1", "two claims"), ("member-1", None)],
    reasons.replaced_by: [(8,)],
    reasons.fixed: [(3, 0), (0, 2), (3, 2)],
    reasons.not_answered: [(("member-1",),)],
    reasons.planned_around: [(("member-1",),)],
    reasons.optimistic: [
        (("member-1",), "50 records/s"),
        (("member-1", "member-2", "member-3", "member-4"), "1.5 records/s"),
    ],
    broker_reasons.topics_unknown: [(["A3kX"],)],
    broker_reasons.member_unknown: [("member-1", broker_reasons.SUBSCRIPTION_UNKNOWN)],
    broker_reasons.member_classic: [("member-1",)],
    broker_reasons.member_shared: [("member-1", "billing")],
    broker_reasons.member_stuck: [("member-1", "billing")],
    broker_reasons.other_assignor: [("member-1", "uniform")],
    broker_reasons.waiting: [],
    broker_reasons.waiting_stuck: [(7, 3, 12, "member-1")],
    broker_reasons.unowned: [("invoices-3", 0), ("invoices-3", 2)],
    broker_reasons.owned_twice: [("invoices-3", 0), ("invoices-3", 2)],
}
_MODULES = (reasons, broker_reasons, order_reasons)
_CONSTANTS = {
    name: text
    for module in _MODULES
    for name, text in vars(module).items()
    if name.isupper() and name[0] != "_" and name != "POLICY"
}
_MADE = {
    f"{template.__name__}{sample}": (template(*sample), sample)
    for template, samples in _SAMPLES.items()
    for sample in samples
}


def test_every_reason_is_among_the_samples() -> None:
    templates = {
        name
        for module in _MODULES
        for name, found in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_")
    }

    assert {template.__name__ for template in _SAMPLES} == templates


@pytest.mark.parametrize("text", _CONSTANTS.values(), ids=_CONSTANTS)
def test_constant_reason_has_the_form_of_a_message(text: str) -> None:
    assert faults(text) == []


@pytest.mark.parametrize(("text", "sample"), _MADE.values(), ids=_MADE)
def test_reason_has_the_form_of_a_message_and_names_its_objects(
    text: str, sample: tuple[object, ...]
) -> None:
    named = [value for value in sample if isinstance(value, str)]

    assert faults(text) == []
    assert [value for value in named if value not in text] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("the plan expired.", "ends in '.'"),
        ("the lag of t-0 is\nunknown", "is empty, has several lines or stray spaces"),
        ("plan epoch 7 still says so", "says 'says so'"),
        ("`lagwise mend` helps", "names the command 'mend'"),
        ("older than plan.max_age", "names the key 'plan.max_age'"),
    ],
)
def test_form_finds_what_is_wrong(text: str, fault: str) -> None:
    assert faults(text) == [fault]
