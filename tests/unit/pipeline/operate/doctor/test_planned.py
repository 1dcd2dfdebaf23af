"""Why a group gets no plan."""

from typing import Any

import pytest

from pipeline.config.model import Config
from pipeline.planning.broker_reasons import ADVICE
from tests.support.job.frames import at, member
from tests.support.operate.findings import told
from tests.support.operate.patient import BATCH_MS, OFFSETS_PARTITION, Patient, group, lag

_EXCLUDED = Config.model_validate({"plan": {"groups": [{"pattern": "bill.*", "exclude": True}]}})


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"group_type": "consumer"}, "member b-1: how far it has come to its target assignment is unknown"),
        ({"group_type": "consumer", "members": None, "state": None}, "the state of the group is unknown"),
        ({"group_type": "share"}, "the group is a share group, where the broker assigns partitions"),
        ({"members": [], "state": "Empty"}, "no members: the group is empty"),
        ({"protocol_type": "connect"}, "the group's protocol type is 'connect', not 'consumer'"),
        ({"assignor": "stream"}, "Kafka Streams assigns tasks"),
        ({"state": "PreparingRebalance"}, "the group is not stable (state PreparingRebalance)"),
    ],
)
def test_kind_of_group_that_gets_no_plan_is_a_note(
    patient: Patient, fields: dict[str, Any], cause: str
) -> None:
    patient.write("plan_state")
    patient.write("consumer_groups", group(**fields))

    ((level, text),) = told(patient.findings(), "planned")

    assert level == "note"
    assert text.startswith(f"the group gets no plan: {cause}")


def test_same_cause_is_told_once_with_the_age_of_the_decision(patient: Patient) -> None:
    patient.write("consumer_groups", group(members=[], state="Empty"))
    patient.decide(
        "abstain", "no members: the group is empty; planning resumes when consumers join", updated_at=at(-60)
    )

    (found,) = [one for one in patient.findings() if one.question == "planned"]

    assert (found.level, found.source, found.as_of) == ("note", "plan_state", at(-60))
    assert found.cause == "abstained: no members: the group is empty"
    assert found.todo == "planning resumes when consumers join"


def test_cause_that_came_after_the_decision_is_told_beside_it(patient: Patient) -> None:
    patient.decide("publish", None, record="{}", epoch=7)
    patient.write(
        "orders",
        {"paused": True, "pause_reason": "INC-1", "ordered_by": "ann", "ordered_at": at(-20), "pinned": []},
    )

    found = [one for one in patient.findings() if one.question == "planned"]

    assert [(one.level, one.source) for one in found] == [("ok", "plan_state"), ("note", "consumer_groups")]
    assert found[1].cause == "the next decision will be to abstain: paused by ann: INC-1"
    assert found[1].todo == "`lagwise resume billing` allows plans again"


def test_group_that_the_configuration_excludes_gets_no_plan(patient: Patient) -> None:
    assert told(patient.findings(config=_EXCLUDED), "planned") == [
        ("note", "the next decision will be to abstain: [[plan.groups]] excludes the group")
    ]
    assert told(patient.findings(), "planned") == []


def test_provisional_group_cannot_be_judged_whatever_the_figures(patient: Patient) -> None:
    words = "1 of 4 partitions of __consumer_offsets not read to their end yet, {} records left"
    patient.write("partition_lag", lag(0), behind=(OFFSETS_PARTITION,), reason=words.format(900))
    patient.decide("abstain", f"provisional: {words.format(1200)}")

    assert told(patient.findings(), "planned") == [
        ("unknown", f"abstained: provisional: {words.format(1200)}")
    ]


def test_reason_that_no_setting_explains_is_a_problem(patient: Patient) -> None:
    patient.decide(
        "abstain",
        "the log offsets of invoices-0 are older than plan.max_staleness_s (90 s); check the brokers, "
        "and how long batches take",
    )

    assert told(patient.findings(), "planned") == [
        ("problem", "abstained: the log offsets of invoices-0 are older than plan.max_staleness_s (90 s)")
    ]


def test_subscription_that_cannot_be_read_is_a_problem(patient: Patient) -> None:
    patient.write("plan_state")
    patient.write("consumer_groups", group(members=[member("b-1", error="truncated")]))

    assert told(patient.findings(), "planned") == [
        ("problem", "the group gets no plan: the subscription of member b-1 cannot be decoded: truncated")
    ]


@pytest.mark.parametrize(
    ("reason", "cause", "todo"),
    [
        (
            "held back by settle: generation 17 is 40 s old, less than settle_s = 120 s",
            "held back by settle: generation 17 is 40 s old, less than settle_s = 120 s",
            "wait until the group has settled, or lower settle_s",
        ),
        (
            "held back by price: a move costs 320 s of arrivals, and the lag has lasted 300 s of 1280 s",
            "held back by price: a move costs 320 s of arrivals, and the lag has lasted 300 s of 1280 s",
            "wait: lag that lasts gets its plan; find out what a member has to load for a partition that is new to it",
        ),
        (
            "held back by migration: migration to KIP-848 is possible; set it to disabled on every broker",
            "held back by migration: migration to KIP-848 is possible",
            "set it to disabled on every broker",
        ),
    ],
)
def test_guard_is_named_with_what_to_do(patient: Patient, reason: str, cause: str, todo: str) -> None:
    patient.decide("unchanged", reason)

    (found,) = [one for one in patient.findings() if one.question == "planned"]

    assert (found.level, found.cause, found.todo) == ("note", f"a better plan is {cause}", todo)


def test_dry_run_is_told_with_the_setting(patient: Patient) -> None:
    moves = [{"topic": "invoices", "partition": 0, "from": "b-1", "to": "b-2", "lag": 5}]
    patient.decide(
        "dry_run",
        "plan.dry_run is true, so the plan is not published; set it to false to publish plans",
        moves=moves,
    )

    assert told(patient.findings(), "planned") == [
        ("note", "a plan with 1 move(s) is made; plan.dry_run is true, so the plan is not published")
    ]


def test_advice_is_told_with_what_to_do_about_it(patient: Patient) -> None:
    moves = [{"topic": "invoices", "partition": 0, "from": "b-1", "to": "b-2", "lag": 5}]
    patient.decide("advice", ADVICE, moves=moves)

    (found,) = [one for one in patient.findings() if one.question == "planned"]

    assert found.level == "note"
    assert found.cause.startswith("a plan with 1 move(s) is made; the broker assigns the group's partitions")
    assert (found.todo or "").startswith("where the brokers run lagwise's assignor, set follow")


def test_plan_that_waits_is_told_with_since_when_and_what_was_refused(patient: Patient) -> None:
    refused = "approval refused: the group rebalanced after the plan was made (approved by ann@desk)"
    patient.decide(
        "awaiting_approval",
        f"{refused}; the plan waits for approval since 2026-01-31T11:59:00.000Z",
        awaiting_since=at(-60),
        valid_until=at(540),
    )

    (found,) = [one for one in patient.findings() if one.question == "planned"]

    assert (found.level, found.cause) == (
        "note",
        f"a plan with 0 move(s) waits for approval since 2023-11-14T22:12:20Z; {refused}",
    )
    assert found.todo == (
        "publish it with `lagwise approve billing` until 2023-11-14T22:22:20Z; after that it is made again"
    )


def test_withdrawn_plan_is_not_called_published(patient: Patient) -> None:
    patient.decide("publish", "withdrawn: paused by ann", record=None, epoch=8)

    causes = [one.cause for one in patient.findings() if one.question == "planned"]

    assert causes == ["the published plan was taken back: withdrawn: paused by ann"]


def test_decision_of_a_later_version_is_not_explained_away(patient: Patient) -> None:
    patient.decide("postponed", "held back by mood: x")

    assert told(patient.findings(), "planned") == [
        ("unknown", "a later version of lagwise has decided: postponed")
    ]


def test_nothing_decided_yet_is_unknown(patient: Patient) -> None:
    patient.write("plan_state")

    assert told(patient.findings(), "planned") == [
        ("unknown", "nothing has been decided about the group yet")
    ]


def test_decisions_that_ceased_are_told_where_the_interval_is_known(patient: Patient) -> None:
    patient.decide("unchanged", "the group has its target assignment", updated_at=at(-10 - 181))

    cause = "the decision is 3 min older than the newest batch, and one is due every 60 s (plan.interval_s)"
    assert told(patient.findings(config=Config()), "planned") == [("problem", cause)]
    assert told(patient.findings(), "planned") == []


def test_what_holds_all_plans_back_is_told_first(patient: Patient) -> None:
    patient.write("partition_lag", lag(0), held="topic lagwise.acks cannot be read", at_ms=BATCH_MS)

    first, second = told(patient.findings(), "planned")

    assert first == ("problem", "no plan is made for any group: topic lagwise.acks cannot be read")
    assert second[0] == "unknown"


def test_pinned_partitions_are_told(patient: Patient) -> None:
    order = {"paused": False, "pinned": [("invoices", "0-3")], "ordered_by": "ann", "ordered_at": at(-20)}
    patient.write("orders", order)

    assert told(patient.findings(), "planned") == [
        ("note", "plans leave pinned partitions where they are: invoices 0-3 (by ann)")
    ]


def test_group_that_is_not_listed_is_not_asked_for_plans(patient: Patient) -> None:
    assert [
        one
        for one in patient.findings(group_id="orders")
        if one.question in {"planned", "followed", "behind"}
    ] == []
