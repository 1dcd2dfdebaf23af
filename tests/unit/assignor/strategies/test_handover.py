import numpy as np

from assignor.evaluation import validity
from assignor.model.assignment import Assignment, Unassigned
from assignor.strategies.handover import next_step
from assignor.strategies.sticky.constrained import assign
from tests.support.assignors.groups import by_name, group, member, owned_by


def test_partition_that_changes_hands_is_withheld_until_it_is_revoked() -> None:
    built = group({"t": 2}, member("a", "t", owned={"t": [0, 1]}), member("b", "t"))
    target = assign(built)

    first = next_step(built, target)
    second = next_step(owned_by(built, first), target)

    assert by_name(built, first) == {"a": ["t-0"], "b": []}
    assert first.why.tolist() == [Unassigned.ASSIGNED, Unassigned.WITHHELD]
    assert by_name(built, second) == {"a": ["t-0"], "b": ["t-1"]}
    validity.check(built, first)
    validity.check(built, second, even="group")


def test_partition_that_kip_615_takes_from_an_older_generation_waits_for_its_reader() -> None:
    """The claim no longer counts, but whoever made it may still be reading."""
    built = group(
        {"t": 4},
        member("a", "t", generation=10),
        member("b", "t", owned={"t": [0, 1]}, generation=9),
    )
    target = assign(built)

    first = next_step(built, target)

    assert by_name(built, target) == {"a": ["t-0", "t-1"], "b": ["t-2", "t-3"]}
    assert by_name(built, first) == {"a": [], "b": ["t-2", "t-3"]}
    validity.check(built, first)
    validity.check(owned_by(built, first), next_step(owned_by(built, first), target), even="group")


def test_contested_partition_is_withheld_even_from_a_claimant() -> None:
    built = group({"t": 1}, member("a", "t", owned={"t": [0]}), member("b", "t", owned={"t": [0]}))

    first = next_step(built, assign(built))

    assert by_name(built, first) == {"a": [], "b": []}
    validity.check(built, first)


def test_target_that_is_a_stale_claimant_waits_for_the_newer_holder() -> None:
    built = group(
        {"t": 1},
        member("stale", "t", owned={"t": [0]}, generation=4),
        member("live", "t", owned={"t": [0]}, generation=5),
    )
    target = Assignment.complete(built, np.array([built.member_ids.index("stale")], np.int32))

    first = next_step(built, target)

    assert first.member.tolist() == [-1]
    validity.check(built, first)


def test_holder_that_no_longer_subscribes_has_to_revoke_first() -> None:
    built = group({"t": 1, "u": 1}, member("a", "u", owned={"t": [0]}), member("b", "t", "u"))
    target = Assignment.complete(built, np.array([1, 0], np.int32))

    first = next_step(built, target)

    assert by_name(built, first) == {"a": ["u-0"], "b": []}
    validity.check(built, first)


def test_unread_partition_keeps_its_own_reason() -> None:
    built = group({"t": 1, "u": 1}, member("a", "t", owned={"u": [0]}))

    first = next_step(built, assign(built))

    assert first.why.tolist() == [Unassigned.ASSIGNED, Unassigned.NOBODY_SUBSCRIBES]
    validity.check(built, first)
