"""Properties of the sticky family, whatever members claim and subscribe to."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assignor.evaluation import validity
from assignor.model.assignment import Assignment
from assignor.model.by_member import by_member
from assignor.model.group import Group
from assignor.model.members import Member
from assignor.protocol.kafka.consumer import Subscription
from assignor.protocol.kafka.sticky import claims_of
from assignor.strategies.handover import next_step
from assignor.strategies.sticky import cooperative as cooperative_sticky
from assignor.strategies.sticky import strategy as sticky
from tests.support.assignors.groups import Description, by_name, descriptions, group, member, owned_by


def settled(description: Description) -> Description:
    """The same members once each has what it was given."""
    built = description.build()
    placed = by_member(built, sticky.assign(built).member)
    members = (replace(m, owned=placed[m.member_id], generation=9) for m in description.members)
    return replace(description, members=tuple(members))


@given(description=descriptions())
def test_target_is_valid_complete_and_as_even_as_subscriptions_allow(description: Description) -> None:
    built = description.build()

    validity.check(built, sticky.assign(built), even="optimal")


@given(description=descriptions())
def test_order_of_members_and_topics_does_not_matter(description: Description) -> None:
    built, turned = description.build(), description.reversed().build()

    target = sticky.assign(built)

    validity.check(built, target, even="optimal")
    assert by_name(turned, sticky.assign(turned)) == by_name(built, target)


@given(description=descriptions())
def test_its_own_result_is_not_moved(description: Description) -> None:
    built = settled(description).build()

    verdict = validity.check(built, sticky.assign(built), even="optimal")

    assert verdict.moves == 0


@given(description=descriptions(equal=True))
def test_member_that_joins_is_the_only_one_to_gain(description: Description) -> None:
    before = settled(description)
    newcomer = Member(member_id="newcomer", topics=tuple(before.partitions))
    built = replace(before, members=(*before.members, newcomer)).build()

    target = sticky.assign(built)

    validity.check(built, target, even="group")
    moved = (target.member != built.owner) & (built.owner >= 0)
    assert set(target.member[moved]) <= {built.member_ids.index("newcomer")}


@given(description=descriptions(equal=True))
def test_member_that_leaves_is_the_only_one_to_lose(description: Description) -> None:
    before = settled(description)
    built = replace(before, members=before.members[1:]).build()

    verdict = validity.check(built, sticky.assign(built), even="group")

    assert verdict.kept == int((built.owner >= 0).sum())


@given(description=descriptions())
def test_first_step_gives_a_partition_to_one_who_reads_it_or_when_nobody_does(
    description: Description,
) -> None:
    built = description.build()

    given_out = next_step(built, cooperative_sticky.assign(built))

    validity.check(built, given_out)
    claimants = _claimants(description, built)
    for member_id, partitions in by_name(built, given_out).items():
        for name in partitions:
            assert not claimants.get(name) or member_id in claimants[name]


@given(description=descriptions())
def test_two_steps_reach_a_target_as_good_as_the_first(description: Description) -> None:
    built = description.build()
    first_target = cooperative_sticky.assign(built)
    revoked = owned_by(built, next_step(built, first_target))

    second_target = cooperative_sticky.assign(revoked)
    second = next_step(revoked, second_target)

    assert second.member.tolist() == second_target.member.tolist()
    planned = validity.check(built, first_target, even="optimal")
    reached = validity.check(built, second, even="optimal")
    assert sorted(reached.counts) == sorted(planned.counts)
    assert reached.kept == planned.kept


@given(description=descriptions())
def test_pinned_target_is_what_two_steps_reach(description: Description) -> None:
    built = description.build()
    target = cooperative_sticky.assign(built)

    second = next_step(owned_by(built, next_step(built, target)), target)

    validity.check(built, second, even="optimal")
    assert second.member.tolist() == target.member.tolist()


INT32 = st.integers(-(2**31), 2**31 - 1)
SUBSCRIPTIONS = st.builds(
    Subscription,
    topics=st.lists(st.sampled_from(("t", "u", "")), max_size=3).map(tuple),
    user_data=st.none() | st.binary(max_size=40),
    owned=st.dictionaries(st.sampled_from(("t", "u", "gone")), st.lists(INT32, max_size=3).map(tuple)),
    generation=INT32,
)


@given(sent=st.lists(SUBSCRIPTIONS, max_size=4), protocol=st.sampled_from(("sticky", "cooperative-sticky")))
def test_no_claim_stops_the_assignor(sent: list[Subscription], protocol: str) -> None:
    claims = [claims_of(protocol, subscription) for subscription in sent]

    built = group(
        {"t": 3, "u": 1},
        *(
            member(f"m{i}", *subscription.topics, owned=claim.owned, generation=claim.generation)
            for i, (subscription, claim) in enumerate(zip(sent, claims, strict=True))
        ),
    )

    validity.check(built, sticky.assign(built), even="optimal")


@given(description=descriptions())
def test_names_of_an_assignment_say_what_its_array_says(description: Description) -> None:
    built = description.build()
    target = sticky.assign(built)

    placed = by_member(built, target.member)

    member_of = np.full(built.n_partitions, -1, np.int32)
    for member_id, topics in placed.items():
        for topic, numbers in topics.items():
            t = built.topics.names.index(topic)
            member_of[built.topics.offsets[t] + np.array(numbers)] = built.member_ids.index(member_id)
    validity.check(built, Assignment.complete(built, member_of), even="optimal")
    assert member_of.tolist() == target.member.tolist()


def _claimants(description: Description, built: Group) -> dict[str, set[str]]:
    """Member ids that claim each real partition, in whatever generation."""
    real = {built.topics.name(partition) for partition in range(built.n_partitions)}
    claims: dict[str, set[str]] = {}
    for claimant in description.members:
        for topic, numbers in claimant.owned.items():
            for number in numbers:
                claims.setdefault(f"{topic}-{number}", set()).add(claimant.member_id)
    return {name: members for name, members in claims.items() if name in real}
