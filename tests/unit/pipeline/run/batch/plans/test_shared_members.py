"""Groups that share a member's id are told, if the broker follows the plans of both."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.config.model import GroupRule, PlanConfig
from pipeline.run.batch.plans.evaluation import shared_members
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.batches import stamp_of
from tests.support.job.frames import arrow, member

FOLLOWED = PlanConfig(
    groups=[
        GroupRule(pattern="old-.*", follow="broker", exclude=True),
        GroupRule(pattern="shop|bank|.*-b", follow="broker"),
    ]
)


def group(name: str, *member_ids: str, **fields: Any) -> dict[str, Any]:
    return {
        "group_id": name,
        "group_type": "consumer",
        "members": [member(one) for one in member_ids],
        **fields,
    }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    create_tables(str(tmp_path), retention_hours=1, storage_options={})
    return Store(str(tmp_path), term=1)


def told(store: Store, config: PlanConfig, *groups: dict[str, Any]) -> dict[str, str]:
    store.write("consumer_groups", arrow("consumer_groups", *groups), stamp_of())
    return dict(shared_members(store, config))


def test_member_of_two_groups_that_the_broker_follows_is_named_in_the_reason_of_each(store: Store) -> None:
    found = told(store, FOLLOWED, group("shop", "s1", "s2"), group("bank", "s2", "b1"), group("x-b", "x1"))

    assert found.keys() == {"shop", "bank"}
    assert found["shop"].startswith("member s2 is also a member of group bank, ")
    assert found["bank"].startswith("member s2 is also a member of group shop, ")


@pytest.mark.parametrize(
    "other",
    [
        group("tool", "s1"),
        group("bank", "s1", group_type="classic"),
        group("old-b", "s1"),
        group("bank", "b1"),
        group("bank"),
        group("bank", members=None),
    ],
    ids=["members follow", "classic", "excluded", "another id", "empty", "of unknown members"],
)
def test_group_whose_plans_no_broker_reads_takes_none_from_another(
    store: Store, other: dict[str, Any]
) -> None:
    assert told(store, FOLLOWED, group("shop", "s1"), other) == {}


def test_without_a_group_that_a_broker_follows_nothing_is_read() -> None:
    nothing: Any = None

    assert shared_members(nothing, PlanConfig()) == {}
