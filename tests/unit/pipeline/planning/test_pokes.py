"""Which groups are poked: those that still match their plan and that a poke cannot harm."""

from typing import Any

import pytest

from assignor.protocol.control import decode
from pipeline import poke_reasons
from pipeline.planning.life import pokes
from tests.support.planning.broker_walk import BrokerWalk
from tests.support.planning.facts import NOW_MS

RECORD = decode((BrokerWalk().decide().record or "").encode())


def member(name: str, **reached: Any) -> dict[str, Any]:
    return {"member_id": name, "is_classic": False, "topic_regex": None} | reached


def group(*members: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "group_type": "consumer",
        "generation": 4,
        "members": list(members),
        "reconciliation": list(members),
    } | fields


BOTH = member("a"), member("b")


def test_group_with_the_members_of_its_plan_is_poked() -> None:
    assert pokes.why_not(group(*BOTH), RECORD, now_ms=NOW_MS) is None
    assert pokes.why_not(group(*BOTH, member("idle")), RECORD, now_ms=NOW_MS) is None


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, poke_reasons.NOT_KIP848),
        (group(*BOTH, group_type="classic"), poke_reasons.NOT_KIP848),
        (group(*BOTH, generation=None), poke_reasons.NOT_KIP848),
        (group(), poke_reasons.OTHER_MEMBERS),
        (group(members=None, reconciliation=None), poke_reasons.OTHER_MEMBERS),
        (group(member("a")), poke_reasons.OTHER_MEMBERS),
        (group(member("a"), member("b", is_classic=True)), pokes.CLASSIC),
        (group(*BOTH, member("c", topic_regex="t.*")), pokes.BY_EXPRESSION),
    ],
)
def test_other_group_is_left_alone(found: dict[str, Any] | None, why: str) -> None:
    assert pokes.why_not(found, RECORD, now_ms=NOW_MS) == why


def test_nobody_is_poked_for_a_plan_that_is_over() -> None:
    assert pokes.why_not(group(*BOTH), RECORD, now_ms=RECORD.valid_until_ms) == pokes.OVER
