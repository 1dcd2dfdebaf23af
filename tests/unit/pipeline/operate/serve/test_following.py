"""Before somebody approves a plan, he is told who would follow it and what it is worth."""

import re
from typing import Any

import pytest

from pipeline.config.model import Config
from pipeline.operate.serve.app import build_app
from pipeline.tables.reading import Tables
from tests.support.operate.asgi import ask
from tests.support.operate.page_orders import write_waiting
from tests.support.operate.table_world import World

_MEMBERS = ("m-1", "m-2", "m-3")


@pytest.fixture
def waiting(world: World) -> World:
    write_waiting(world, "m-1", "m-2", drain_s_before=240.5, drain_s_after=44.0)
    return world


def members(world: World, assignor: str = "range") -> None:
    world.write(
        "consumer_groups",
        {"assignor": assignor, "members": [{"member_id": one, "assigned": []} for one in _MEMBERS]},
    )


def acked(world: World, *acks: tuple[str, str, int]) -> None:
    rows: list[dict[str, Any]] = [
        {"kind": kind, "member_id": member_id, "id": member_id, "epoch": epoch, "position": 1}
        for member_id, kind, epoch in acks
    ]
    world.write("acks", *rows)


def told(world: World) -> str:
    world.complete()
    html = ask(build_app(Tables(str(world.root)), Config()), "/group?id=billing").text
    worth = html[html.index('<ul class="worth">') :]
    return " ".join(re.sub(r"<[^>]+>", "", worth[: worth.index("</ul>")]).split())


def test_worth_of_the_plan_stands_where_it_is_approved(waiting: World) -> None:
    members(waiting)

    assert "Worth: drains in 4.0 min as assigned, 44.0 s under the plan; 1 move." in told(waiting)


def test_members_that_have_acknowledged_a_plan_are_counted_and_a_missing_one_is_named(waiting: World) -> None:
    members(waiting)
    acked(waiting, ("m-1", "accepted", 4), ("m-3", "applied", 3), ("m-9", "applied", 4))

    assert "2 of 3 members have acknowledged a plan; the plan needs m-2, not known to follow." in told(
        waiting
    )


def test_group_in_which_nobody_ever_answered_is_told_to_follow_perhaps_never(waiting: World) -> None:
    members(waiting)

    assert "none of 3 members has acknowledged a plan so far: perhaps nobody follows." in told(waiting)


def test_newest_answer_counts_and_a_plan_that_is_over_is_no_refusal(waiting: World) -> None:
    members(waiting)
    acked(
        waiting, ("m-1", "accepted", 3), ("m-1", "refused", 4), ("m-2", "refused", 3), ("m-2", "accepted", 4)
    )
    acked(waiting, ("m-3", "accepted", 3), ("m-3", "void", 4))

    assert "2 of 3 members have acknowledged a plan; the plan needs m-1, not known" in told(waiting)


def test_members_under_the_assignor_of_plans_follow_all(waiting: World) -> None:
    members(waiting, assignor="lagwise")

    assert "Who follows: all 3 members list the assignor lagwise." in told(waiting)


def test_followers_of_a_group_of_unknown_members_are_unknown(waiting: World) -> None:
    assert "Who follows: unknown, since the members of the group are unknown." in told(waiting)


def test_group_that_the_broker_assigns_is_followed_by_the_broker(waiting: World) -> None:
    named = [{"member_id": one, "assigned": []} for one in _MEMBERS]
    waiting.write("consumer_groups", {"group_type": "consumer", "members": named})

    assert "Who follows: the broker, where it runs the assignor lagwise." in told(waiting)
