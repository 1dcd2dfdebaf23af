"""KIP-848 groups as their records leave them, batch by batch."""

from datetime import datetime
from typing import Any

import pytest

from assignor.protocol.kafka.consumer_group import ClassicMember, MemberState
from assignor.protocol.kafka.record_types import RecordType
from pipeline.fold.columns import BEHEADED
from pipeline.fold.consumer_groups import consumer_group_events
from tests.support.groups.consumer_group_records import (
    PARTITION,
    Written,
    current,
    epoch,
    events,
    gone,
    key,
    metadata,
    regex,
    target,
    target_epoch,
    topic_names,
)
from tests.support.groups.consumer_group_table import NAMES, Groups
from tests.support.job.frames import at, decoded_rows

STABLE = (
    metadata("a", "t"),
    metadata("b", "t"),
    epoch(2),
    target("a", {"t": [0, 1]}),
    target("b", {"t": [2]}),
    target_epoch(2),
    current("a", 2, {"t": [0, 1]}),
    current("b", 2, {"t": [2]}),
)


def groups(*stored: dict[str, Any]) -> Groups:
    return Groups(*stored)


def test_group_has_its_epochs_members_and_their_partitions() -> None:
    row = groups().run(*STABLE)

    assert [row.row()[name] for name in ("group_type", "state", "generation", "target_epoch")] == [
        "consumer",
        "Stable",
        2,
        2,
    ]
    assert row.members("member_id", "client_id", "client_host", "topics", "assigned", "error") == [
        ("a", "client-a", "/10.0.0.1", ["t"], {"t": [0, 1]}, None),
        ("b", "client-b", "/10.0.0.1", ["t"], {"t": [2]}, None),
    ]
    assert row.progress("member_id", "member_epoch", "state", "target", "behind_since") == [
        ("a", 2, "STABLE", {"t": [0, 1]}, None),
        ("b", 2, "STABLE", {"t": [2]}, None),
    ]


def test_member_is_described_by_what_it_said_when_it_joined() -> None:
    classic = ClassicMember(session_timeout_ms=9, protocols=())
    found = groups().run(
        epoch(1),
        metadata(
            "a",
            "u",
            instance_id="i",
            rack_id="r",
            topic_regex="t.*",
            server_assignor="uniform",
            classic=classic,
        ),
        regex("t.*", "t", "t2"),
    )

    assert found.members("group_instance_id", "rack", "topics") == [("i", "r", ["t", "t2", "u"])]
    assert found.progress("topic_regex", "rebalance_timeout_ms", "server_assignor", "is_classic") == [
        ("t.*", 60_000, "uniform", True)
    ]
    assert found.row()["assignor"] == "uniform"


def test_what_a_regex_matches_is_unknown_until_the_broker_has_said_it() -> None:
    found = groups().run(epoch(1), metadata("a", "u", topic_regex="t.*"))

    assert found.members("topics") == [(None,)]
    assert found.run(regex("t.*", "t")).members("topics") == [(["t", "u"],)]
    assert found.run(regex("t.*", "t", "t2")).members("topics") == [(["t", "t2", "u"],)]
    assert found.run(gone(regex("t.*"))).members("topics") == [(None,)]


def test_empty_regex_rack_and_assignor_and_negative_timeout_are_none() -> None:
    fields: dict[str, Any] = {
        "topic_regex": "",
        "rack_id": "",
        "server_assignor": "",
        "rebalance_timeout_ms": -1,
    }
    found = groups().run(epoch(1), metadata("a", "t", **fields))

    assert found.members("topics", "rack") == [(["t"], None)]
    assert found.progress("topic_regex", "rebalance_timeout_ms", "server_assignor") == [(None, None, None)]


@pytest.mark.parametrize(
    ("wanted", "assignor"),
    [
        (["x", None], "x"),
        (["x", "x", "y"], "x"),
        (["x", "y"], None),
        ([None], None),
    ],
)
def test_assignor_is_the_one_that_most_members_ask_for(
    wanted: list[str | None], assignor: str | None
) -> None:
    members = [metadata(f"m{number}", server_assignor=name) for number, name in enumerate(wanted)]

    assert groups().run(epoch(1), *members).row()["assignor"] == assignor


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ((epoch(3),), "Assigning"),
        ((current("a", 1, {"t": [0]}),), "Reconciling"),
        ((epoch(3), target_epoch(3)), "Reconciling"),
        ((current("a", 2, {"t": [0]}, state=MemberState.UNRELEASED_PARTITIONS),), "Reconciling"),
        ((current("a", 2, {"t": [0]}, state=99),), "Reconciling"),
        (
            tuple(
                gone(record)
                for name in "ab"
                for record in (current(name, 0), target(name, {}), metadata(name))
            ),
            "Empty",
        ),
        (((key(RecordType.CONSUMER_GROUP_METADATA), b""),), None),
        (((key(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA), b""),), None),
        (((key(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "a"), b""),), None),
    ],
)
def test_state_is_what_kafka_makes_of_the_epochs(records: tuple[Written, ...], state: str | None) -> None:
    assert groups().run(*STABLE).run(*records).row()["state"] == state


def test_group_without_a_target_is_assigning() -> None:
    found = groups().run(metadata("a", "t"), epoch(1), current("a", 0))

    assert (found.row()["state"], found.row()["target_epoch"]) == ("Assigning", 0)


def test_partition_that_has_to_be_given_up_is_its_owners_until_it_is() -> None:
    found = groups().run(*STABLE)
    asked = {"pending": {"t": [1]}, "state": MemberState.UNREVOKED_PARTITIONS}

    found.run(epoch(3), target("a", {"t": [0]}), target_epoch(3), current("a", 2, {"t": [0]}, **asked))

    assert found.members("member_id", "assigned")[0] == ("a", {"t": [0, 1]})
    assert found.progress("target", "pending_revocation", "member_epoch", "state")[0] == (
        {"t": [0]},
        {"t": [1]},
        2,
        "UNREVOKED_PARTITIONS",
    )
    assert found.run(current("a", 3, {"t": [0]})).members("assigned")[0] == ({"t": [0]},)


def test_member_is_behind_since_it_was_told_or_since_the_target_was_made() -> None:
    found = groups().run(*STABLE)
    told = current("b", 2, pending={"t": [2]}, state=MemberState.UNREVOKED_PARTITIONS)

    found.run(epoch(3), target_epoch(3), told)

    assert found.progress("member_id", "behind_since") == [("a", at(9)), ("b", at(10))]
    assert isinstance(found.progress("behind_since")[0][0], datetime)


def test_member_that_leaves_is_gone_at_once_and_the_group_is_empty_after_the_last() -> None:
    found = groups().run(*STABLE)
    left = [gone(record) for record in (current("b", 0), target("b", {}), metadata("b"))]

    assert found.run(*left, epoch(3)).members("member_id") == [("a",)]
    found.run(*(gone(record) for record in (current("a", 0), target("a", {}), metadata("a"))), epoch(4))
    assert [found.row()[name] for name in ("state", "members", "generation")] == ["Empty", [], 4]


def test_group_whose_records_are_all_deleted_is_gone_and_made_again_it_has_new_ones_only() -> None:
    found = groups().run(*STABLE)
    deleted = [gone(record) for record in reversed(STABLE)]

    assert found.run(*deleted).table.num_rows == 0
    assert found.run(metadata("c", "u"), epoch(1)).members("member_id") == [("c",)]
    assert groups().run(*STABLE).run(*deleted, metadata("c", "u"), epoch(1)).members("member_id") == [("c",)]


def test_group_whose_own_record_is_not_read_yet_is_there_and_its_epoch_unknown() -> None:
    found = groups().run(metadata("c", "u"))

    assert found.members("member_id") == [("c",)]
    assert [found.row()[name] for name in ("generation", "state")] == [None, None]


def test_tombstones_of_groups_that_nobody_knows_leave_no_row() -> None:
    assert groups().run(gone(metadata("a")), gone(current("a", 0))).table.num_rows == 0
    assert groups().run(gone(epoch(1))).table.num_rows == 0


def test_damaged_record_makes_unknown_what_it_replaces_and_no_more() -> None:
    found = groups().run(*STABLE)

    found.run(
        (current("a", 0)[0], b"\x00\x00\x01"), (target("b", {})[0], b""), (metadata("b")[0], b"\x00\x09")
    )

    (a, b) = found.members("member_id", "client_id", "topics", "assigned", "error")
    assert a[:4] == ("a", "client-a", ["t"], None)
    assert a[4].startswith("current assignment: member epoch: 4 bytes needed")
    assert b[:4] == ("b", None, None, {"t": [2]})
    assert "metadata: unknown version 9" in b[4]
    assert found.progress("member_epoch", "target", "pending_revocation") == [
        (None, {"t": [0, 1]}, None),
        (2, None, {}),
    ]
    assert [found.row()[name] for name in ("generation", "target_epoch")] == [2, 2]


def test_topic_that_cannot_be_named_is_unknown_until_it_can() -> None:
    found = groups().run(*STABLE, current("a", 2, {"t": [0, 1], "u": [4]}), names=topic_names("t"))

    (unresolved,) = found.progress("unresolved_topic_ids")[0]
    assert unresolved == list(topic_names("u"))
    assert found.members("assigned", "error")[0] == (
        {"t": [0, 1]},
        f"assigned topics with these ids are unknown: {unresolved[0]}",
    )
    position = found.row()["group_position"]
    assert found.run().members("assigned", "error")[0] == ({"t": [0, 1], "u": [4]}, None)
    assert found.row()["group_position"] == position


def test_records_that_are_read_a_second_time_change_nothing() -> None:
    found = groups().run(*STABLE).run(gone(current("b", 0)), gone(metadata("b")), epoch(3))
    before = found.row()

    found.run(*STABLE, first=0)

    assert found.row() == before


def test_records_that_the_row_contains_already_do_not_take_it_back() -> None:
    table = groups().run(*STABLE, current("a", 3, {"t": [0]})).table
    read = decoded_rows(*events(*STABLE)).kind("group_record")

    (event,) = consumer_group_events(table, read, NAMES, reread=()).to_pylist(maps_as_pydicts="strict")

    assert event["members"][0]["assigned"] == {"t": [0]}


def test_group_in_a_log_that_is_read_again_is_what_is_found_there() -> None:
    found = groups().run(*STABLE)

    found.run(behind=[PARTITION], reread=[PARTITION])
    assert (found.row()["confirmed"], found.members("member_id")) == (False, [("a",), ("b",)])
    # The log was made again: its offsets begin at 0.
    found.run(metadata("c", "t"), behind=[PARTITION], first=0).run(epoch(9))

    assert found.members("member_id") == [("c",)]
    assert (found.row()["confirmed"], found.row()["generation"]) == (True, 9)


def test_group_that_is_not_met_when_its_log_is_read_again_is_dropped() -> None:
    assert groups().run(*STABLE).run(reread=[PARTITION]).table.num_rows == 0


def test_what_is_stored_stays_and_is_marked_where_the_log_has_lost_its_beginning() -> None:
    found = groups().run(*STABLE)

    found.run(metadata("c", "t"), reread=[PARTITION], beheaded=[PARTITION], first=2)
    assert found.members("member_id") == [("a",), ("b",), ("c",)]
    assert (found.row()["confirmed"], found.row()["unconfirmed_reason"]) == (False, BEHEADED)
    found.run(gone(metadata("a")), gone(current("a", 0)))
    assert found.members("member_id") == [("b",), ("c",)]
    assert found.row()["unconfirmed_reason"] == BEHEADED
    found.run(seconded=["g"])
    assert (found.row()["confirmed"], found.row()["unconfirmed_reason"]) == (True, None)


SAID = {"group_type": "consumer", "offsets_partition": None, "state": "Stable"}
SILENT = {"confirmed": False, "unconfirmed_reason": "its coordinator did not answer"}


@pytest.mark.parametrize("mark", [{}, SILENT], ids=["answered", "silent"])
@pytest.mark.parametrize("is_first", [True, False], ids=["first batch", "later batch"])
def test_group_that_a_coordinator_has_told_of_is_what_its_records_say_once_they_are_read(
    mark: dict[str, Any], is_first: bool
) -> None:
    found = groups(SAID | mark)
    if not is_first:
        found.run(reread=[PARTITION], behind=[PARTITION])

    found.run(*STABLE, reread=[PARTITION] if is_first else [])

    assert found.members("member_id") == [("a",), ("b",)]
    assert [found.row()[name] for name in ("confirmed", "unconfirmed_reason", "offsets_partition")] == [
        True,
        None,
        PARTITION,
    ]


@pytest.mark.parametrize("is_first", [True, False], ids=["first batch", "later batch"])
def test_group_that_a_coordinator_has_told_of_is_marked_where_the_log_has_lost_its_beginning(
    is_first: bool,
) -> None:
    found = groups(SAID | SILENT)
    of_log = {"reread": [PARTITION], "beheaded": [PARTITION]}
    if not is_first:
        found.run(**of_log)

    found.run(metadata("a", "t"), **(of_log if is_first else {}))

    assert (found.row()["confirmed"], found.row()["unconfirmed_reason"]) == (False, BEHEADED)


def test_classic_group_that_is_converted_and_back_is_shown_by_the_protocol_that_it_has() -> None:
    classic = {"generation": 3, "group_position": 0, "state": "Stable"}

    found = groups(classic).run(*STABLE, classic=[{"row_kind": "group_tombstone"}], first=1)
    assert (found.row()["group_type"], found.row()["generation"]) == ("consumer", 2)

    deleted = [gone(record) for record in reversed(STABLE)]
    found.run(*deleted, classic=[{"generation": 5, "state": "Stable"}])
    assert (found.row()["group_type"], found.row()["generation"]) == ("classic", 5)
    assert [found.row()[name] for name in ("target_epoch", "reconciliation", "records")] == [None, None, None]


def test_members_that_0_1_0_did_not_know_stay_unknown_and_a_group_without_members_has_none() -> None:
    old = {"group_type": "consumer", "members": [], "state": None, "group_position": 1}

    assert groups(old).run().row()["members"] is None
    empty = groups().run(epoch(1))
    assert (empty.row()["members"], empty.row()["state"]) == ([], "Empty")
    assert empty.run().row()["members"] == []


def test_group_of_which_an_earlier_version_read_the_epoch_alone_stays_so_until_its_log_is_read_again() -> (
    None
):
    old = {"group_type": "consumer", "members": None, "generation": 4, "group_position": 1}
    found = groups(old)
    found.position = 2

    found.run(current("a", 5, {"t": [0]}))
    assert (found.row()["generation"], found.row()["members"]) == (4, None)
    found.run(*STABLE, first=0, reread=[PARTITION])
    assert (found.row()["generation"], found.members("member_id")) == (2, [("a",), ("b",)])


def test_records_of_a_batch_count_although_the_brokers_second_what_was_stored() -> None:
    found = groups().run(*STABLE)
    found.run(metadata("c", "t"), reread=[PARTITION], beheaded=[PARTITION], first=2)

    found.run(epoch(7), seconded=["g"])

    assert found.row()["generation"] == 7


def test_static_member_that_is_away_for_a_moment_is_not_behind() -> None:
    found = groups().run(*STABLE)

    found.run(current("a", -2, {"t": [0]}))

    assert dict(found.progress("member_id", "behind_since"))["a"] is None
