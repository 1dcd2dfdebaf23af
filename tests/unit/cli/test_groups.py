import json
from typing import Any

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
        ["alone", "consumer", "-", "-", "-", "-", "-"],
        ["billing", "classic", "Stable", "range", "eager", "4", "2"],
    ]


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
