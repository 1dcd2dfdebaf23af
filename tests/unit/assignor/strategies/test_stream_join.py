from dataclasses import replace

import numpy as np
import pytest

from assignor.evaluation import validity
from assignor.model.assignment import Assignment, Unassigned
from assignor.model.group import Group
from assignor.strategies import stream_join
from assignor.strategies.handover import next_step
from tests.support.assignors.groups import by_name, group, member

JOIN = ("clicks", "impressions")


def assigned(built: Group) -> Assignment:
    target = stream_join.assign(built)
    validity.check(built, target)
    return target


def fixing(built: Group, *names: str) -> Group:
    """The group with these partitions, as people write them, fixed."""
    return replace(built, fixed=np.isin([built.topics.name(p) for p in range(built.n_partitions)], names))


def numbers(built: Group, target: Assignment, topic: str) -> dict[str, list[int]]:
    return {
        member_id: [int(name.rsplit("-", 1)[1]) for name in partitions if name.startswith(topic + "-")]
        for member_id, partitions in by_name(built, target).items()
    }


def test_example_of_kip_315_gives_only_what_the_lost_member_had_to_others() -> None:
    owned = {"A": [0, 1, 2], "B": [3, 4, 5], "C": [6, 7]}
    built = group(
        {"clicks": 10, "impressions": 10},
        *(member(name, *JOIN, owned=dict.fromkeys(JOIN, tuple(o))) for name, o in owned.items()),
    )

    target = assigned(built)

    for topic in JOIN:
        assert numbers(built, target, topic) == {"A": [0, 1, 2, 9], "B": [3, 4, 5], "C": [6, 7, 8]}


def test_numbers_that_the_smallest_topic_lacks_are_left_out_with_the_reason() -> None:
    built = group({"clicks": 2, "impressions": 4}, member("A", *JOIN), member("B", *JOIN))

    target = assigned(built)

    assert numbers(built, target, "impressions") == {"A": [0], "B": [1]}
    assert target.why.tolist() == [0, 0, 0, 0, Unassigned.BEYOND_JOIN, Unassigned.BEYOND_JOIN]


def test_topic_that_one_member_tries_out_is_read_only_in_its_own_numbers() -> None:
    built = group({"clicks": 4, "impressions": 4, "new": 4}, member("A", *JOIN, "new"), member("B", *JOIN))

    target = assigned(built)

    assert numbers(built, target, "clicks") == {"A": [0, 1], "B": [2, 3]}
    assert numbers(built, target, "new") == {"A": [0, 1], "B": []}
    assert target.why[-4:].tolist() == [0, 0, *[Unassigned.OWNER_DOES_NOT_READ] * 2]


def test_added_topic_follows_the_numbers_that_are_owned() -> None:
    built = group(
        {"clicks": 4, "impressions": 4},
        member("A", *JOIN, owned={"clicks": [1, 2]}),
        member("B", *JOIN, owned={"clicks": [0, 3]}),
    )

    assert numbers(built, assigned(built), "impressions") == {"A": [1, 2], "B": [0, 3]}


def test_zombie_loses_its_numbers_to_the_newer_generation() -> None:
    built = group(
        {"clicks": 2, "impressions": 2},
        member("live", *JOIN, owned={"clicks": [0]}, generation=5),
        member("zombie", *JOIN, owned={"clicks": [1], "impressions": [0, 1]}, generation=4),
    )

    target = assigned(built)

    assert numbers(built, target, "impressions") == {"live": [0], "zombie": [1]}
    assert numbers(built, target, "clicks") == {"live": [0], "zombie": [1]}


def test_number_that_two_members_hold_in_different_topics_belongs_to_nobody() -> None:
    built = group(
        {"clicks": 3, "impressions": 3},
        member("A", *JOIN, owned={"clicks": [2, 1]}),
        member("B", *JOIN, owned={"impressions": [2], "clicks": [0]}),
    )

    target = assigned(built)

    assert numbers(built, target, "clicks") == {"A": [1, 2], "B": [0]}
    assert next_step(built, target, by_number=True).why[[2, 5]].tolist() == [0, Unassigned.WITHHELD]


def test_number_that_cannot_be_assigned_counts_for_no_owner() -> None:
    built = group(
        {"clicks": 6, "impressions": 3},
        member("A", *JOIN, owned={"clicks": [2, 3, 4, 5]}),
        member("B", *JOIN, owned=dict.fromkeys(JOIN, (0, 1))),
    )

    assert numbers(built, assigned(built), "clicks") == {"A": [2], "B": [0, 1]}


def test_stealing_begins_with_the_longest_list() -> None:
    built = group(
        dict.fromkeys(JOIN, 8),
        member("A", *JOIN, owned=dict.fromkeys(JOIN, (0, 1, 2))),
        member("B", *JOIN, owned=dict.fromkeys(JOIN, (3, 4, 5, 6, 7))),
        member("C", *JOIN),
    )

    assert numbers(built, assigned(built), "clicks") == {"A": [0, 1, 2], "B": [3, 4, 5], "C": [6, 7]}


def test_empty_topic_and_topic_nobody_reads_do_not_stop_the_join() -> None:
    built = group({"clicks": 1, "empty": 0, "other": 1}, member("A", "clicks", "empty"))

    target = assigned(built)

    assert target.why.tolist() == [0, Unassigned.NOBODY_SUBSCRIBES]


def test_member_that_reads_nothing_gets_no_number() -> None:
    built = group({"clicks": 2}, member("A"), member("B", "clicks"))

    assert by_name(built, assigned(built)) == {"A": [], "B": ["clicks-0", "clicks-1"]}


def test_group_without_anything_to_join_gets_an_empty_assignment() -> None:
    built = group({"clicks": 2}, member("A"))

    assert assigned(built).member.tolist() == [-1, -1]


def test_number_is_handed_over_in_all_topics_at_once() -> None:
    built = group(
        {"clicks": 2, "impressions": 2},
        member("A", *JOIN, owned={"clicks": [0, 1]}),
        member("B", *JOIN),
    )
    target = assigned(built)

    apart = next_step(built, target)
    together = next_step(built, target, by_number=True)

    validity.check(built, apart)
    validity.check(built, together)
    assert numbers(built, apart, "impressions") == {"A": [0], "B": [1]}
    assert numbers(built, together, "impressions") == {"A": [0], "B": []}


def test_partition_that_its_target_holds_is_not_revoked_for_the_rest_of_its_number() -> None:
    built = group(
        {"clicks": 2, "impressions": 2},
        member("A", *JOIN, owned={"clicks": [0, 1], "impressions": [0]}, generation=5),
        member("B", *JOIN, owned={"impressions": [1]}, generation=5),
    )
    target = Assignment.complete(built, np.array([0, 1, 0, 1], np.int32))

    first = next_step(built, target, by_number=True)

    validity.check(built, first)
    assert by_name(built, first) == {"A": ["clicks-0", "impressions-0"], "B": ["impressions-1"]}


def test_fixed_partition_holds_those_that_are_joined_with_it() -> None:
    built = group(
        dict.fromkeys(JOIN, 4),
        member("A", *JOIN, owned=dict.fromkeys(JOIN, (0, 1, 2, 3))),
        member("B", *JOIN),
    )
    fixed = fixing(built, "clicks-2")

    # Two numbers each, as without: the one that is fixed counts.
    assert numbers(built, assigned(fixed), "clicks") == {"A": [0, 2], "B": [1, 3]}
    assert numbers(built, assigned(fixed), "impressions") == {"A": [0, 2], "B": [1, 3]}


@pytest.mark.parametrize("others", [(0, 1, 3), (0, 1, 2, 3)], ids=["of nobody", "of the same member"])
def test_partner_goes_where_the_fixed_partition_stays(others: tuple[int, ...]) -> None:
    built = group(
        dict.fromkeys(JOIN, 4),
        member("A", *JOIN, owned={"clicks": (0, 1, 2, 3), "impressions": others}),
        member("B", *JOIN),
    )

    held = by_name(built, assigned(fixing(built, "clicks-2")))

    assert {"clicks-2", "impressions-2"} <= set(held["A"])


def test_split_numbers_are_joined_at_the_fixed_partitions() -> None:
    built = group(
        dict.fromkeys(JOIN, 4),
        member("A", *JOIN, owned={"clicks": (0, 1, 2, 3)}),
        member("B", *JOIN, owned={"impressions": (0, 1, 2, 3)}),
    )

    held = by_name(built, assigned(fixing(built, *(f"clicks-{n}" for n in range(4)))))

    assert held == {"A": [f"{topic}-{n}" for topic in JOIN for n in range(4)], "B": []}


def test_number_that_is_fixed_at_two_members_does_not_move() -> None:
    built = group(
        {"clicks": 4, "impressions": 4, "views": 4},
        member("A", *JOIN, "views", owned={"clicks": (2,), "views": (0, 1, 2, 3)}),
        member("B", *JOIN, "views", owned={"impressions": (2,)}),
    )

    held = by_name(built, assigned(fixing(built, "clicks-2", "impressions-2")))

    assert {"clicks-2", "views-2"} <= set(held["A"])
    assert "impressions-2" in held["B"]


def test_partner_that_the_member_of_a_fixed_number_does_not_read_is_left_out_with_the_reason() -> None:
    built = group(
        dict.fromkeys(JOIN, 2),
        member("A", "clicks", owned={"clicks": (0, 1)}),
        member("B", *JOIN),
    )

    held = assigned(fixing(built, "clicks-0", "clicks-1"))

    assert held.why[2:].tolist() == [Unassigned.OWNER_DOES_NOT_READ] * 2


def test_partner_of_a_number_at_a_closed_member_stays_or_is_left_out_with_the_reason() -> None:
    built = group(
        {"clicks": 2, "impressions": 2},
        member("A", *JOIN, owned={"clicks": (0, 1)}),
        member("B", *JOIN, owned={"impressions": (0,)}),
    )
    closed = replace(built, closed=np.array([True, False]))

    target = assigned(closed)

    assert by_name(built, target) == {"A": ["clicks-0", "clicks-1"], "B": ["impressions-0"]}
    assert target.why[-1] == Unassigned.NOBODY_TAKES
