"""Numbers stay whole, even and with their owners, as far as the rule of KIP-315 gets pick by pick."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.model.assignment import Unassigned
from assignor.strategies import stream_join
from assignor.strategies.handover import next_step
from tests.support.assignors import literal_rules
from tests.support.assignors.groups import Description, descriptions, group, member, owned_by


@given(description=descriptions())
def test_all_topics_of_a_number_go_to_one_member(description: Description) -> None:
    built = description.build()

    target = stream_join.assign(built)

    validity.check(built, target)
    by_number: dict[int, set[int]] = {}
    for partition in np.nonzero(target.member >= 0)[0]:
        by_number.setdefault(int(built.topics.number_of[partition]), set()).add(int(target.member[partition]))
    assert all(len(members) == 1 for members in by_number.values())


@given(description=descriptions())
def test_only_what_the_text_leaves_out_is_unassigned(description: Description) -> None:
    built = description.build()
    readable = built.readable()
    smallest = min(built.topics.counts[built.topics.topic_of[readable]].tolist(), default=0)

    target = stream_join.assign(built)

    validity.check(built, target)
    beyond = readable & (built.topics.number_of >= smallest)
    assert (target.why == Unassigned.BEYOND_JOIN).tolist() == beyond.tolist()


@given(description=descriptions())
def test_its_own_result_is_not_moved(description: Description) -> None:
    built = description.build()
    settled = owned_by(built, stream_join.assign(built))

    again = stream_join.assign(settled)

    validity.check(settled, again)
    assert again.member.tolist() == settled.ownership.holder.tolist()


@given(description=descriptions())
def test_no_number_is_split_between_the_steps_of_a_hand_over(description: Description) -> None:
    built = description.build()
    target = stream_join.assign(built)

    first = next_step(built, target, by_number=True)
    second = next_step(owned_by(built, first), target, by_number=True)

    validity.check(built, first)
    newly_given = (first.member >= 0) & (first.member != built.ownership.holder)
    waiting = built.topics.number_of[first.why == Unassigned.WITHHELD]
    assert not np.isin(built.topics.number_of[newly_given], waiting).any()
    assert second.member.tolist() == target.member.tolist()


@given(n_members=st.integers(1, 5), owners=st.lists(st.integers(-1, 4), min_size=1, max_size=12))
def test_counts_and_kept_numbers_equal_those_of_the_rule_pick_by_pick(
    n_members: int, owners: list[int]
) -> None:
    owners = [owner if owner < n_members else -1 for owner in owners]
    built = group(
        {"t": len(owners)},
        *(
            member(f"m{m}", "t", owned={"t": [i for i, owner in enumerate(owners) if owner == m]})
            for m in range(n_members)
        ),
    )

    target = stream_join.assign(built)

    verdict = validity.check(built, target, even="group")
    picks = np.array(literal_rules.stream_join_picks(len(owners), n_members, owners))
    assert sorted(verdict.counts) == sorted(np.bincount(picks, minlength=n_members))
    assert verdict.kept == int((picks == np.array(owners)).sum())
