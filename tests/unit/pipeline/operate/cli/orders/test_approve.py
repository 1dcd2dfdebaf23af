"""`lagwise approve` before it asks a broker: which plan waits, and what an operator is told instead."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from assignor.protocol.commands import Approval, Orders
from pipeline.clock import now_ms
from pipeline.errors import NotWaitingError
from pipeline.operate.cli.app import app
from pipeline.operate.cli.orders import approve as command
from pipeline.operate.cli.orders import change as orders_change
from pipeline.operate.cli.orders.approval import with_approval
from pipeline.operate.cli.orders.change import as_text, row
from pipeline.planning.state import GroupState, to_json
from pipeline.tables.stamp import Stamp
from tests.support.operate.patient import plan
from tests.support.operate.table_world import NOON, World

_MOVE = {"topic": "invoices", "partition": 3, "from": "b-1", "to": "b-2", "lag": 900}
WAITING: dict[str, Any] = {
    "decision": "awaiting_approval",
    "reason": "the plan waits",
    "strategy": "lag-sticky",
    "moves": [_MOVE],
    "assignment": [("b-2", [("invoices", "3")])],
    "target_hash": "3f2a",
    "base_hash": "91bc",
    "awaiting_since": NOON,
    "valid_until": NOON + timedelta(minutes=10),
    "recorded_at": NOON,
    "state": to_json(GroupState()),
}
APPROVAL = Approval(target_hash="3f2a", base_hash="91bc", reason="INC-1", by="ann@desk", at_ms=500)
NOTHING = Orders(cluster="c", group="billing")

Approve = Callable[..., Result]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Orders]:
    """Orders that would have been written."""
    written: list[Orders] = []

    def give(_group: str, change: Callable[[Orders], Orders], **_: Any) -> Orders:
        written.append(change(NOTHING))
        return written[-1]

    monkeypatch.setattr(command, "give", give)
    return written


@pytest.fixture
def approve(tmp_path: Path) -> Approve:
    file = tmp_path / "lagwise.toml"
    file.write_text(
        f'[kafka.properties]\n"bootstrap.servers" = "b:1"\n[tables]\nroot = "{tmp_path}"\n', encoding="utf-8"
    )

    def run(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(app, ["approve", "billing", *arguments, "--config", str(file)], **options)

    return run


def test_plan_is_shown_and_asked_about(world: World, approve: Approve, given: list[Orders]) -> None:
    world.write("plan_state", WAITING)

    refused, approved = approve(input="n\n"), approve("--reason", "INC-1", input="y\n")

    assert (refused.exit_code, approved.exit_code) == (1, 0)
    assert approved.stdout.splitlines()[4:7] == [
        "  b-2: invoices 3",
        "  waiting since 2026-01-31T12:00:00Z, can be approved until 2026-01-31T12:10:00Z",
        "  plan 3f2a-91bc",
    ]
    assert "move invoices-3: b-1 -> b-2 (lag 900)" in approved.stdout
    (orders,) = given
    assert orders.approval is not None
    assert (orders.approval.hashes, orders.approval.reason) == (("3f2a", "91bc"), "INC-1")


def test_operator_is_told_that_the_plan_is_of_old_tables_before_he_is_asked(
    world: World, approve: Approve, given: list[Orders]
) -> None:
    world.write("plan_state", WAITING)
    world.write("partition_lag", stamp=Stamp(batch_id=1, at_ms=now_ms() - 604_800_000))

    result = approve(input="n\n")

    assert (result.exit_code, given) == (1, [])
    assert result.stderr.startswith("the table was written 60480")


@pytest.mark.parametrize("arguments", [("--yes",), ("--plan", "3f2a-91bc"), ("--yes", "-o", "json")], ids=str)
def test_scripts_are_not_asked(
    world: World, approve: Approve, given: list[Orders], arguments: tuple[str, ...]
) -> None:
    world.write("plan_state", WAITING)

    result = approve(*arguments)

    assert (result.exit_code, len(given), "Publish plan" in result.stdout) == (0, 1, False)


def test_json_does_not_ask_and_so_needs_an_answer(world: World, approve: Approve) -> None:
    world.write("plan_state", WAITING)

    result = approve("-o", "json")

    assert result.exit_code == 2
    assert "add --plan ID or --yes" in result.stderr


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (None, "nothing has been decided about group billing yet; check the name, or wait"),
        (
            {"decision": "unchanged", "reason": "held back by lag: x"},
            "no plan of group billing waits for approval; the newest decision is unchanged: held back by lag: x",
        ),
        (
            {"decision": "unchanged", "state": to_json(GroupState(plan=plan(approved_by="ann@desk")))},
            "no plan of group billing waits for approval; plan epoch 7 is published already, approved by ann@desk",
        ),
    ],
    ids=["nothing", "held back", "published"],
)
def test_nothing_that_waits_says_what_is_the_case(
    world: World, approve: Approve, given: list[Orders], decision: dict[str, Any] | None, message: str
) -> None:
    rows = [] if decision is None else [WAITING | decision]
    world.write("plan_state", WAITING | {"group_id": "other"}, *rows)

    result = approve("--yes")

    assert (result.exit_code, given) == (1, [])
    assert result.stderr.startswith(f"lagwise: {message}")


def test_plan_of_another_id_is_not_approved(world: World, approve: Approve, given: list[Orders]) -> None:
    world.write("plan_state", WAITING)

    result = approve("--plan", "3f2a-0000")

    assert (result.exit_code, given) == (1, [])
    assert "plan 3f2a-0000 of group billing no longer waits for approval, but 3f2a-91bc does" in result.stderr


def test_second_operator_is_told_who_was_first() -> None:
    held = replace(NOTHING, approval=APPROVAL)

    with pytest.raises(NotWaitingError, match=r"ann@desk has already approved the plan"):
        with_approval(held, WAITING, reason="", by="eva@desk")


def test_plan_that_was_approved_too_late_and_waits_again_may_be_approved_again() -> None:
    held = replace(NOTHING, approval=APPROVAL)
    answered = WAITING | {"state": to_json(GroupState(approval_at_ms=500))}

    approval = with_approval(held, answered, reason="again", by="eva@desk").approval

    assert approval is not None
    assert (approval.reason, approval.at_ms > 500) == ("again", True)


@pytest.mark.parametrize(("before_ms", "after_ms"), [(None, 500), (400, 500), (9000, 9001)], ids=str)
def test_approval_is_newer_than_any_before_it_whatever_the_clock_says(
    before_ms: int | None, after_ms: int
) -> None:
    before = None if before_ms is None else replace(APPROVAL, target_hash="0", at_ms=before_ms)

    after = orders_change.approve(replace(NOTHING, approval=before), APPROVAL)

    assert after == replace(NOTHING, approval=replace(APPROVAL, at_ms=after_ms))


def test_approval_is_said_in_words_and_for_programs() -> None:
    orders = replace(NOTHING, approval=APPROVAL)

    assert as_text(orders) == "plan 3f2a-91bc approved (INC-1)"
    assert (row(orders)["approved_plan"], row(orders)["approved_by"]) == ("3f2a-91bc", "ann@desk")
