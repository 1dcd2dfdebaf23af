"""Which pokes a batch requests after it has published plans."""

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config.model import Config, GroupRule, PlanConfig
from pipeline.planning.memory import PlanRecord
from pipeline.publish.pokes import Poke
from pipeline.run.batch.plans import pokes
from pipeline.run.batch.plans.pokes import poke_groups
from tests.support.job.batches import idle_driver
from tests.support.job.frames import arrow, member
from tests.support.planning.broker_walk import BrokerWalk
from tests.support.planning.facts import NOW_MS

RECORD = BrokerWalk().decide().record or ""
GROUP: dict[str, Any] = {
    "group_id": "g",
    "group_type": "consumer",
    "generation": 4,
    "members": [member("a"), member("b")],
}
POKED = GroupRule(pattern="g", follow="broker", poke=True)


class Asked:
    """Replaces `Pokes`."""

    def __init__(self) -> None:
        self.pokes: list[Poke] = []
        self.forgotten: set[str] = set()

    def request(self, pokes: Any) -> None:
        self.pokes += pokes

    def forget(self, group_ids: Any) -> None:
        self.forgotten |= {*group_ids}


def asked(
    monkeypatch: pytest.MonkeyPatch, value: str | None = RECORD, rule: GroupRule = POKED, **group: Any
) -> list[Poke]:
    return known(monkeypatch, value, rule, **group).pokes


def known(
    monkeypatch: pytest.MonkeyPatch, value: str | None = RECORD, rule: GroupRule = POKED, **group: Any
) -> Asked:
    monkeypatch.setattr(pokes, "now_ms", lambda: NOW_MS)
    made, stored = Asked(), arrow("consumer_groups", GROUP | group)
    driver = idle_driver(
        config=Config(plan=PlanConfig(groups=(rule,))),
        pokes=made,
        store=SimpleNamespace(arrow=lambda _name, columns, where: stored.filter(where).select(columns)),
    )
    poke_groups(driver.services, [PlanRecord("g", 1, value)])
    return made


def test_group_is_poked_for_a_plan_with_the_members_that_it_gives_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (one,) = asked(monkeypatch)

    assert (one.group_id, one.epoch, one.members) == ("g", 1, ("a", "b"))


@pytest.mark.parametrize(
    "rule",
    [GroupRule(pattern="g", follow="broker"), GroupRule(pattern="h", follow="broker", poke=True)],
)
def test_group_that_nobody_has_opted_in_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, rule: GroupRule
) -> None:
    assert asked(monkeypatch, rule=rule) == []


@pytest.mark.parametrize(
    "value",
    [
        None,
        "{",
        RECORD.replace('"dry_run":false', '"dry_run":true'),
        RECORD.replace('"group_protocol":"consumer",', ""),
    ],
    ids=["withdrawn", "unreadable", "dry run", "classic"],
)
def test_record_that_no_broker_applies_pokes_nobody(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    made = known(monkeypatch, value)

    assert made.pokes == []
    # What is queued for the group is for an earlier plan.
    assert made.forgotten == {"g"}


def test_poke_that_is_requested_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    assert known(monkeypatch).forgotten == set()


def test_group_that_is_classic_by_now_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, group_type="classic") == []
