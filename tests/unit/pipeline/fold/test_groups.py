"""Groups of the stored state brought forward by one batch."""

from typing import Any

from pipeline.fold.columns import BEHEADED
from pipeline.fold.groups import fold_groups
from tests.support.job.frames import arrow, decoded_arrow, shown


def group_event(
    position: int, group_type: str = "classic", *, gone: bool = False, **fields: Any
) -> dict[str, Any]:
    kind = "group_tombstone" if gone else "group"
    return {"row_kind": kind, "position": position, "group_type": group_type, "members": []} | fields


def groups_after(
    stored: list[dict[str, Any]],
    events: list[dict[str, Any]],
    *,
    reread: tuple[int, ...] = (),
    behind: tuple[int, ...] = (),
) -> list[tuple[Any, ...]]:
    result = fold_groups(
        arrow("consumer_groups", *stored),
        decoded_arrow(*events),
        reread=reread,
        behind=behind,
    )
    return shown(result, "group_id", "group_type", "generation", "group_position", "confirmed")


def test_newest_group_record_stands() -> None:
    stored = [{"generation": 3, "group_position": 5}]

    assert groups_after(stored, [group_event(9, generation=5), group_event(8, generation=4)]) == [
        ("g", "classic", 5, 9, True)
    ]


def test_members_of_other_types_that_an_earlier_version_left_empty_become_unknown() -> None:
    kept = {"group_position": 5, "members": []}
    stored = [{"group_id": kind, "group_type": kind, **kept} for kind in ("classic", "consumer", "share")]
    event = {"row_kind": "group", "group_id": "new", "position": 6, "group_type": "streams", "members": None}

    result = fold_groups(arrow("consumer_groups", *stored), decoded_arrow(event), reread=(), behind=())

    members = dict(zip(result["group_id"].to_pylist(), result["members"].to_pylist(), strict=True))
    assert members == {"classic": [], "consumer": None, "share": None, "new": None}


def test_deleted_group_is_gone_and_made_again_it_is_back() -> None:
    stored = [{"generation": 3, "group_position": 5}]

    assert groups_after(stored, [group_event(9, gone=True)]) == []
    assert groups_after(stored, [group_event(9, gone=True), group_event(10, generation=1)]) == [
        ("g", "classic", 1, 10, True)
    ]


def test_group_that_became_a_consumer_group_is_one_whichever_record_came_first() -> None:
    stored = [{"generation": 3, "group_position": 5}]
    tombstone_first = [group_event(9, gone=True), group_event(10, "consumer")]
    header_first = [group_event(9, "consumer"), group_event(10, gone=True)]

    assert groups_after(stored, tombstone_first) == [("g", "consumer", None, 10, True)]
    assert groups_after(stored, header_first) == [("g", "consumer", None, 9, True)]


def test_group_that_a_reading_from_the_start_has_not_met_is_dropped_at_its_end() -> None:
    stored = [{"generation": 3, "group_position": 5}]

    assert groups_after(stored, [], reread=(3,), behind=(3,)) == [("g", "classic", 3, 5, False)]
    assert groups_after(stored, [], reread=(3,)) == []
    assert groups_after(stored, [], reread=(4,)) == [("g", "classic", 3, 5, True)]


def test_group_of_which_nobody_knows_the_partition_has_to_be_met_before_everything_is_read() -> None:
    stored = [{"generation": None, "group_position": None, "offsets_partition": None}]
    unmet = [one | {"confirmed": False} for one in stored]

    assert groups_after(stored, [], reread=(3,), behind=(3,)) == [("g", "classic", None, None, False)]
    assert groups_after(unmet, [], behind=(4,)) == [("g", "classic", None, None, False)]
    assert groups_after(unmet, [group_event(9, generation=5)], behind=(4,)) == [("g", "classic", 5, 9, True)]
    assert groups_after(unmet, []) == []


def test_group_record_of_a_log_made_again_counts_whatever_its_position() -> None:
    stored = [{"generation": 3, "group_position": 500}]

    assert groups_after(stored, [group_event(2, generation=1)], reread=(3,)) == [("g", "classic", 1, 2, True)]


def test_group_tombstone_of_a_log_made_again_removes_the_group_that_was_known() -> None:
    stored = [{"generation": 3, "group_position": 500}]

    assert groups_after(stored, [group_event(2, gone=True)], reread=(3,), behind=(3,)) == []


def kept(stored: dict[str, Any], events: list[dict[str, Any]], **more: Any) -> list[tuple[Any, ...]]:
    result = fold_groups(
        arrow("consumer_groups", stored), decoded_arrow(*events), **{"reread": (), "behind": (), **more}
    )
    return shown(result, "generation", "confirmed", "unconfirmed_reason")


def test_group_whose_record_was_cut_off_stays_with_its_members_and_the_reason() -> None:
    stored = {"generation": 3, "group_position": 5, "members": [{"member_id": "m"}]}

    assert kept(stored, [], reread=(3,), beheaded=(3,)) == [(3, False, BEHEADED)]
    assert kept(stored, [], reread=(3,)) == []


def test_group_without_its_record_is_confirmed_by_a_record_or_by_the_brokers() -> None:
    stored = {"generation": 3, "group_position": 5, "confirmed": False, "unconfirmed_reason": "cut"}

    assert kept(stored, []) == [(3, False, "cut")]
    assert kept(stored, [group_event(90, generation=4)]) == [(4, True, None)]
    assert kept(stored, [group_event(90, gone=True)]) == []
    assert kept(stored, [], seconded=("g",)) == [(3, True, None)]
