import json
from datetime import timedelta
from typing import Any

import pytest

from pipeline.clock import now_ms
from pipeline.tables.stamp import Stamp
from tests.support.operate.table_world import NOON

_MEMBER = {"client_id": "c", "client_host": "/h", "topics": ["t"], "owned": {}, "assigned": {}}
_GROUP = {
    "state": "Stable",
    "assignor": "range",
    "rebalance_protocol": "eager",
    "generation": 4,
    "members": [
        _MEMBER | {"member_id": "m2", "topics": ["t", "a"], "assigned": {"t": [10, 9, 0], "a": [1]}},
        _MEMBER | {"member_id": "m1"},
    ],
}


def test_groups_come_in_order_with_member_counts(world: Any) -> None:
    world.write("consumer_groups", _GROUP, {"group_id": "alone", "group_type": "consumer"})

    assert world.lines("groups") == [
        ["alone", "consumer", "-", "-", "-", "-", "-", "-"],
        ["billing", "classic", "Stable", "range", "eager", "4", "2", "-"],
    ]


@pytest.mark.parametrize("members", [None, []], ids=["null", "as versions before 0.2 wrote it"])
@pytest.mark.parametrize("group_type", ["consumer", "share", "streams"])
def test_members_that_are_not_read_are_unknown_and_never_none_at_all(
    world: Any, group_type: str, members: list[Any] | None
) -> None:
    world.write("consumer_groups", {"group_type": group_type, "members": members})

    assert world.lines("groups") == [["billing", group_type, "-", "-", "-", "-", "-", "-"]]
    (group,) = json.loads(world.run("groups", "-o", "json").stdout)
    assert group["members"] is None
    listed = world.run("groups", "--members")
    assert "the members of 1 of 1 groups are unknown: " in listed.stderr


def test_member_whose_assignment_cannot_be_read_has_an_unknown_number_of_partitions(world: Any) -> None:
    unread = {"client_id": "c", "client_host": "/h", "member_id": "w", "error": "torn"}
    world.write("consumer_groups", {"members": [_MEMBER | {"member_id": "m"}, unread]})

    assert world.lines("groups", "--members") == [
        ["billing", "m", "/h", "c", "0", "-"],
        ["billing", "w", "/h", "c", "-", "-"],
    ]
    assert "are unknown" not in world.run("groups", "--members").stderr


def test_group_that_nobody_has_confirmed_is_marked_and_told_with_the_reason(world: Any) -> None:
    reason = "the beginning of its part of the offsets topic was deleted unread"
    world.write("consumer_groups", _GROUP | {"unconfirmed_reason": reason}, _GROUP | {"group_id": "sure"})

    result = world.run("groups")

    assert [line.split()[2] for line in result.stdout.splitlines()[1:]] == ["Stable*", "Stable"]
    assert f"* state and members of 1 of 2 groups may be out of date: {reason}\n" in result.stderr
    assert "out of date" not in world.run("groups", "-g", "sure").stderr
    wide = world.run("groups", "--wide").stdout.splitlines()
    assert [reason in line for line in wide] == [False, True, False]


def test_group_whose_part_of_the_offsets_topic_is_not_read_is_marked_and_told_with_the_reason(
    world: Any,
) -> None:
    reason = "1 of 50 partitions of __consumer_offsets cannot be read: broker 2 does not answer"
    stamp = Stamp(batch_id=1, at_ms=now_ms(), behind=(3,), reason=reason)
    world.write(
        "partition_lag",
        {"offsets_partition": 3},
        {"group_id": "bare", "offsets_partition": 3},
        {"group_id": "bare-read", "offsets_partition": 4},
        stamp=stamp,
    )
    world.write(
        "consumer_groups",
        _GROUP | {"offsets_partition": 3},
        _GROUP | {"group_id": "read", "offsets_partition": 4},
    )

    result = world.run("groups")

    assert [line.split()[2] for line in result.stdout.splitlines()[1:]] == ["-*", "-", "Stable*", "Stable"]
    assert result.stderr == f"* state and members of 2 of 4 groups are provisional: {reason}\n"
    groups = json.loads(world.run("groups", "-o", "json").stdout)
    assert [group["provisional"] for group in groups] == [True, False, True, False]


def test_old_tables_are_told_on_stderr(world: Any) -> None:
    world.write("partition_lag", stamp=Stamp(batch_id=1, at_ms=now_ms() - 604_800_000))
    world.write("consumer_groups", _GROUP)

    assert world.run("groups").stderr.startswith("the table was written 60480")
    assert world.run("groups", "--members").stderr.startswith("the table was written 60480")


def test_classic_group_without_members_has_0(world: Any) -> None:
    world.write("consumer_groups", {"state": "Empty", "members": []})

    assert world.lines("groups")[0][-2] == "0"


def test_group_with_commits_and_without_a_record_is_listed_with_nothing_known(world: Any) -> None:
    world.write("consumer_groups", _GROUP)
    world.write(
        "partition_lag",
        {"lag": 3},
        {"group_id": "assigned", "lag": 3},
        {"group_id": "assigned", "partition": 1, "lag": 3},
        {"cluster": "d", "group_id": "billing"},
    )

    assert [line[:3] for line in world.lines("groups")] == [
        ["assigned", "-", "-"],
        ["billing", "classic", "Stable"],
        ["billing", "-", "-"],
    ]
    assert world.lines("groups", "-g", "ass*") == [["assigned", "-", "-", "-", "-", "-", "-", "-"]]
    (group,) = json.loads(world.run("groups", "-g", "assigned", "-o", "json").stdout)
    assert (group["group_type"], group["members"], group["cluster"]) == (None, None, "c")
    assert group["updated_at"] == "2026-01-31T12:00:00.000000Z"
    assert "assigned" not in world.run("groups", "--members").stdout


def test_assignment_of_members_reads_as_kafkas_tool_writes_it(world: Any) -> None:
    world.write("consumer_groups", _GROUP)

    assert world.lines("groups", "--members") == [
        ["billing", "m1", "/h", "c", "0", "-"],
        ["billing", "m2", "/h", "c", "4", "a:1;t:0,9,10"],
    ]


def test_json_holds_members_as_objects(world: Any) -> None:
    world.write("consumer_groups", _GROUP)

    (group,) = json.loads(world.run("groups", "-o", "json").stdout)

    assert group["members"][0]["assigned"] == {"t": [10, 9, 0], "a": [1]}
    assert group["members"][1]["assigned"] == {}


def test_group_glob_without_a_match_is_exit_status_1(world: Any) -> None:
    world.write("consumer_groups", _GROUP)

    result = world.run("groups", "-g", "x*")

    assert (result.exit_code, result.stderr) == (1, "no group matches\n")


def test_plan_that_waits_is_shown_with_since_when(world: Any) -> None:
    world.write("consumer_groups", _GROUP, {"group_id": "alone"})
    world.write(
        "plan_state",
        {"decision": "awaiting_approval", "awaiting_since": NOON - timedelta(minutes=1), "recorded_at": NOON},
        {"group_id": "alone", "decision": "unchanged", "recorded_at": NOON},
    )

    shown = world.run("groups").stdout.splitlines()
    (alone, billing) = json.loads(world.run("groups", "-o", "json").stdout)

    assert shown[1].endswith("unchanged")
    assert shown[2].endswith("awaiting_approval since 2026-01-31T11:59:00Z")
    assert (alone["decision"], alone["awaiting_since"]) == ("unchanged", None)
    assert billing["awaiting_since"] == "2026-01-31T11:59:00.000000Z"


def test_members_of_a_kip_848_group_show_how_far_they_are_from_their_target(world: Any) -> None:
    progress = {
        "member_id": "m",
        "member_epoch": 3,
        "target": [("t", [0])],
        "pending_revocation": [("t", [1])],
        "topic_regex": "t.*",
    }
    members = [_MEMBER | {"member_id": "m", "assigned": [("t", [0, 1])]}]
    kip_848 = {"group_type": "consumer", "state": "Reconciling", "target_epoch": 4, "generation": 4}
    world.write(
        "consumer_groups",
        kip_848 | {"members": members, "reconciliation": [progress]},
        _GROUP | {"group_id": "classic"},
    )

    (row, *others) = json.loads(world.run("groups", "--members", "-o", "json").stdout)

    assert (row["partitions"], row["member_epoch"], row["topic_regex"]) == (2, 3, "t.*")
    assert (row["target"], row["pending_revocation"]) == ({"t": [0]}, {"t": [1]})
    assert {one["member_epoch"] for one in others} == {None}
    header, *_ = world.run("groups", "--members", "--wide").stdout.splitlines()
    assert header.split()[-6:] == ["CLUSTER", "EPOCH", "TARGET", "TO-GIVE-UP", "REGEX", "BEHIND-SINCE"]
    (listed, _) = json.loads(world.run("groups", "-o", "json").stdout)
    assert listed["target_epoch"] == 4


def test_kip_848_group_without_members_has_0(world: Any) -> None:
    world.write("consumer_groups", {"group_type": "consumer", "state": "Empty", "members": []})

    assert world.lines("groups")[0][-2] == "0"
