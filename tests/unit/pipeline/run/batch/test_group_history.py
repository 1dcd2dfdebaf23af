"""The step of the groups' history: a row when something is new about a group, one only, whatever happens meanwhile."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pipeline.planning.state import FRESH, PlanState, to_json
from pipeline.run.batch.groups import store_group_history, store_groups
from tests.support.job.frames import at, member
from tests.support.job.step_batches import StepBatches, offsets

WRITTEN = {"group_history", "consumer_groups"}
Row = dict[str, Any]


@pytest.fixture
def batches(tmp_path: Path) -> StepBatches:
    return StepBatches(str(tmp_path), store_group_history, store_groups)


def group(position: int, generation: int, *members: Row, group_id: str = "g", partition: int = 3) -> Row:
    """A record of a classic group."""
    return {
        "row_kind": "group",
        "group_id": group_id,
        "group_type": "classic",
        "state": "Stable" if members else "Empty",
        "generation": generation,
        "members": list(members),
        "offsets_partition": partition,
        "position": position,
    }


def header(position: int, epoch: int | None) -> Row:
    """The record of a KIP-848 group, whose members are in other records."""
    fields = {"group_type": "consumer", "generation": epoch, "state": None, "position": position}
    return group(position, 0) | fields


def of_broker(position: int, epoch: int, *members: Row, state: str = "Stable") -> Row:
    """A KIP-848 group, as stored from its records."""
    return group(position, epoch, *members) | {"group_type": "consumer", "state": state}


def planned(target: dict[str, dict[str, str]]) -> str:
    """The memory of a group with a plan of this target."""
    plan = PlanState(
        epoch=1,
        base_generation=4,
        target=target,
        revoked={},
        moves=1,
        published_at_ms=0,
        sent_at_ms=0,
        valid_until_ms=0,
        lag=0,
        drain_s=None,
        status_at_ms=0,
    )
    return to_json(type(FRESH)(plan=plan))


def tombstone(position: int, group_type: str = "classic") -> Row:
    return {
        "row_kind": "group_tombstone",
        "group_id": "g",
        "group_type": group_type,
        "position": position,
        "members": [],
    }


def history(batches: StepBatches, *columns: str) -> list[tuple[Any, ...]]:
    rows = batches.store.arrow("group_history").sort_by("updated_at").to_pylist()
    return [tuple(row[name] for name in columns) for row in rows]


def whys(batches: StepBatches) -> list[str]:
    return [why for (why,) in history(batches, "why")]


A, B, C = (member(name, assigned={"t": [number]}) for number, name in enumerate("abc"))


def test_row_holds_the_group_its_members_and_what_they_hold(batches: StepBatches) -> None:
    batches.run(group(1, 4, A, B))

    (row,) = batches.store.arrow("group_history").to_pylist(maps_as_pydicts="strict")
    assert (row["cluster"], row["group_id"], row["generation"], row["state"]) == ("local", "g", 4, "Stable")
    assert (row["why"], row["joined"], row["left"]) == ("first_seen", None, None)
    assert [(one["member_id"], one["assigned"]) for one in row["members"]] == [
        ("a", {"t": [0]}),
        ("b", {"t": [1]}),
    ]
    assert (row["updated_at"], row["date"], row["batch_id"]) == (at(0), at(0).date(), 0)


def test_who_came_and_who_went_is_named(batches: StepBatches) -> None:
    batches.run(group(1, 4, A, B))
    batches.run(group(2, 5, B, C))

    assert history(batches, "why", "joined", "left")[1:] == [("joined, left", ["c"], ["a"])]


def test_quiet_batches_and_records_that_say_the_same_leave_no_row(batches: StepBatches) -> None:
    batches.run(group(1, 4, A))

    assert batches.run() == set()
    assert batches.run(group(2, 4, A)) == {"consumer_groups"}
    assert batches.run(group(3, 1, group_id="h", partition=4)) == WRITTEN

    assert whys(batches) == ["first_seen", "first_seen"]


def test_new_generation_of_the_same_members_is_a_rebalance(batches: StepBatches) -> None:
    batches.run(group(1, 4, A, B))
    batches.run(group(2, 5, A, B))

    assert history(batches, "why", "joined", "left")[1:] == [("rebalanced", [], [])]


def test_static_member_that_was_restarted_is_replaced_and_nobody_left(batches: StepBatches) -> None:
    first, second = (member(name, group_instance_id="i") for name in ("i-1", "i-2"))
    batches.run(group(1, 4, first))
    batches.run(group(2, 4, second))

    assert history(batches, "why", "joined", "left")[1:] == [("replaced", [], [])]


def test_member_that_subscribes_to_other_topics_is_seen(batches: StepBatches) -> None:
    batches.run(group(1, 4, A, B))
    batches.run(group(2, 5, A | {"topics": ["t", "u"]}, B))
    batches.run(group(3, 6, A | {"topics": ["t", "v"]}, B))

    assert whys(batches)[1:] == ["resubscribed", "resubscribed"]


def test_group_that_takes_its_plan_in_a_rebalance_was_moved_by_it(batches: StepBatches) -> None:
    batches.run(group(1, 4, A, B))
    batches.driver.memory.states["g"] = planned({"a": {"t": "0-1"}, "b": {"u": ""}})
    batches.run(group(2, 5, member("a", assigned={"t": [1, 0]}), member("b")))
    batches.run(group(3, 6, member("a", assigned={"t": [0, 1]}), member("b")))

    assert whys(batches)[1:] == ["moved_by_plan", "rebalanced"]


def test_group_that_is_deleted_is_gone_once_and_may_return(batches: StepBatches) -> None:
    batches.run(group(1, 4, A))
    batches.run(tombstone(2))
    batches.run(tombstone(3))
    batches.run(group(4, 1, A))

    assert history(batches, "why", "group_type", "generation", "members", "left") == [
        ("first_seen", "classic", 4, [batches_member(A)], None),
        ("gone", "classic", None, None, None),
        ("returned", "classic", 1, [batches_member(A)], None),
    ]


def batches_member(one: Row) -> Row:
    """A member as the table has it."""
    return one | {"owned": [], "assigned": list(one["assigned"].items())}


def test_group_that_migrates_to_kip_848_changes_its_type_and_its_members_are_unknown(
    batches: StepBatches,
) -> None:
    batches.run(group(1, 4, A, B))
    batches.run(tombstone(2), header(3, 5))
    batches.run(header(4, 6))
    batches.run(header(5, None))
    batches.run(header(6, 7))

    assert history(batches, "why", "group_type", "generation", "members", "joined", "left")[1:] == [
        ("type_changed", "consumer", 5, None, None, None),
        ("rebalanced", "consumer", 6, None, None, None),
        ("rebalanced", "consumer", 7, None, None, None),
    ]


def test_start_with_tables_of_before_writes_what_changed_meanwhile_and_nothing_else(
    batches: StepBatches,
) -> None:
    batches.run(group(1, 4, A), group(1, 1, B, group_id="h", partition=7))
    batches.restart()
    batches.run(group(9, 6, A, C))
    batches.restart()
    batches.run()

    assert history(batches, "group_id", "why", "joined")[2:] == [("g", "joined", ["c"])]


def test_group_whose_partition_cannot_be_read_after_a_start_is_not_gone(batches: StepBatches) -> None:
    batches.run(group(1, 4, A), group(1, 4, A, group_id="h", partition=7))
    batches.restart()
    batches.run(behind=[3])
    batches.run(group(2, 5, A, B))

    assert history(batches, "group_id", "why")[2:] == [("g", "joined")]


def test_what_is_read_on_the_way_to_the_end_of_a_partition_is_no_rebalance_of_today(
    batches: StepBatches,
) -> None:
    batches.run(group(1, 4, A), behind=[3])
    batches.run(group(2, 5, A, B), behind=[3])
    assert whys(batches) == []

    batches.run(group(3, 6, A, B))

    assert history(batches, "why", "generation") == [("first_seen", 6)]


def test_partition_that_was_not_read_for_a_while_shows_what_came_of_it(batches: StepBatches) -> None:
    batches.run(group(1, 4, A), group(1, 4, A, group_id="h", partition=7))
    batches.run(group(2, 5, A, B), group(2, 5, C, group_id="h", partition=7), behind=[3])
    batches.run(behind=[3])
    batches.run(group(3, 6, B))

    assert history(batches, "group_id", "why", "joined", "left")[2:] == [
        ("h", "joined, left", ["c"], ["a"]),
        ("g", "joined, left", ["b"], ["a"]),
    ]


def test_group_without_a_record_is_gone_when_a_reading_from_the_start_is_at_its_end(
    batches: StepBatches,
) -> None:
    batches.run(group(1, 4, A), group(2, 1, B, group_id="h"))
    batches.run(group(1, 4, A), reread=offsets(3), behind=[3])
    batches.run()

    assert history(batches, "group_id", "why")[2:] == [("h", "gone")]


def told(*members: Row, group_id: str) -> Row:
    """What a coordinator says of a classic group: it stands in no record."""
    return group(0, 0, *members, group_id=group_id) | dict.fromkeys(
        ("generation", "offsets_partition", "position")
    )


def test_groups_that_were_asked_for_stay_while_the_topic_is_read_in_their_place(batches: StepBatches) -> None:
    batches.run(told(A, group_id="g"), told(A, group_id="h"), told(A, group_id="i"))
    batches.restart()

    batches.run(reread=offsets(3, 4), behind=[3, 4])
    batches.run(group(8, 4, A, B), behind=[3, 4])
    assert batches.values("consumer_groups", "group_id") == ["g", "h", "i"]
    assert whys(batches) == ["first_seen"] * 3

    batches.run(group(9, 4, A, C), behind=[4])
    batches.run(group(5, 1, A, group_id="h", partition=4), behind=[4])
    assert batches.values("consumer_groups", "group_id") == ["g", "h", "i"]
    assert history(batches, "group_id", "why", "joined")[3:] == [("g", "joined", ["c"])]

    batches.run()
    assert batches.values("consumer_groups", "group_id") == ["g", "h"]
    assert history(batches, "group_id", "why")[4:] == [("i", "gone")]


def test_batch_that_was_cut_short_behind_the_history_leaves_one_row(batches: StepBatches) -> None:
    batches.run(group(1, 4, A))
    batches.run(group(2, 5, A, B), cut_behind="store_group_history")
    batches.restart()

    # Whether it is the same batch again, or one of another checkpoint.
    batches.run(group(2, 5, A, B), written={"group_history"})
    batches.restart()
    batches.run(group(2, 5, A, B))

    assert whys(batches) == ["first_seen", "joined"]
    assert batches.values("consumer_groups", "generation") == [5]


def test_tables_of_an_earlier_version_begin_with_the_groups_as_they_are(batches: StepBatches) -> None:
    batches.run(group(1, 4, A))
    forget(batches)
    batches.restart()
    batches.run()

    assert history(batches, "why", "generation") == [("first_seen", 4)]


def forget(batches: StepBatches) -> None:
    """Make the history empty, as it is when this version meets the tables for the first time."""
    DeltaTable(batches.store.path("group_history")).delete()


def test_many_groups_at_once_are_each_compared_with_themselves(batches: StepBatches) -> None:
    names = [f"g{number}" for number in range(50)]
    batches.run(*(group(1, 1, A, B, group_id=name) for name in names))
    batches.run(*(group(2, 2, *([A] if n % 2 else [A, B]), group_id=name) for n, name in enumerate(names)))

    rows = {row["group_id"]: row["why"] for row in after(batches)}
    assert rows == {name: "left" if n % 2 else "rebalanced" for n, name in enumerate(names)}


def after(batches: StepBatches) -> list[Row]:
    """Rows of the second batch."""
    rows: pa.Table = batches.store.arrow("group_history")
    return [row for row in rows.to_pylist() if row["batch_id"] == 1]


def test_epochs_of_the_broker_that_move_nothing_have_no_row(batches: StepBatches) -> None:
    batches.run(of_broker(1, 4, A, B))
    batches.run(of_broker(2, 5, A, B, state="Assigning"))
    batches.run(of_broker(3, 5, A, B))

    assert whys(batches) == ["first_seen"]


@pytest.mark.parametrize(("target", "why"), [({}, "rebalanced"), ({"b": {"t": "0-1"}}, "moved_by_plan")])
def test_group_of_the_broker_has_one_row_when_it_is_at_rest_with_other_owners(
    batches: StepBatches, target: dict[str, dict[str, str]], why: str
) -> None:
    none, both = member("a", assigned={}), member("b", assigned={"t": [0, 1]})
    batches.run(of_broker(1, 4, A, B))
    batches.driver.memory.states["g"] = planned(target)
    batches.run(of_broker(2, 5, A, B, state="Reconciling"))
    batches.run(of_broker(3, 5, none, B, state="Reconciling"))
    batches.run(of_broker(4, 5, none, both))

    assert whys(batches) == ["first_seen", why]


def test_owner_that_becomes_known_is_no_rebalance(batches: StepBatches) -> None:
    unnamed = member("a", assigned={}, error="assigned topics with these ids are unknown: x")
    batches.run(of_broker(1, 4, unnamed, B))
    batches.run(of_broker(2, 4, A, B))

    assert whys(batches) == ["first_seen"]
