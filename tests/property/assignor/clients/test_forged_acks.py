"""Whoever may write acknowledgements moves no partition: forged, again, in another order, in anybody's name."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.clients.follower.state import Found, Look, Looked
from assignor.protocol.acks import Release
from assignor.protocol.marks import HandOverMark
from tests.support.followers.follow_forger import KINDS, Forged, Forgery, Replay, at_random
from tests.support.followers.follow_walk import walk
from tests.support.followers.follow_world import BrokenPromiseError, Node

forgeries = st.builds(
    Forgery,
    kind=st.sampled_from([*KINDS, Release, Release]),
    member=st.integers(0, 4),
    to=st.integers(0, 4),
    partition=st.integers(0, 5),
    hop=st.integers(1, 4),
    offset=st.integers(0, 40),
    epoch=st.integers(-1, 1),
    generation=st.integers(-1, 1),
)
attacks = st.lists(forgeries | st.builds(Replay, st.integers(0, 1000)), min_size=1, max_size=60)


def attacked(attack: list[Forgery | Replay]) -> type[Forged]:
    return type("Attacked", (Forged,), {"forgeries": attack})


@settings(max_examples=150)
@given(st.integers(0, 2**32), attacks)
def test_forged_acks_make_no_second_owner_and_set_no_commit_back(
    seed: int, attack: list[Forgery | Replay]
) -> None:
    walk(seed, steps=300, world_type=attacked(attack))


def test_plans_are_made_under_attack_too() -> None:
    worlds = [walk(seed, steps=300, world_type=attacked(at_random(Random(seed), 60))) for seed in range(20)]

    assert sum(world.takes for world in worlds) > 20


class Believing(Forged):
    """The newest release on the topic is taken for what the group has committed."""

    def _carry_out(self, node: Node, action: object) -> None:
        if not isinstance(action, Look):
            super()._carry_out(node, action)  # type: ignore[arg-type]  # the rest is passed on as it comes
            return
        found = {
            (ack.topic, ack.partition): Found(
                offset=ack.offset,
                mark=HandOverMark(kind="release", generation=ack.generation, epoch=ack.epoch, hop=ack.hop),
            )
            for ack in self.acks
            if isinstance(ack, Release) and (ack.topic, ack.partition) in action.places
        }
        self._feed(node, Looked(found=found))


def test_follower_that_believes_a_record_is_caught() -> None:
    release = Forgery(kind=Release, member=0, to=1, partition=0, hop=1, offset=0)
    attack = [
        Forgery(**{**vars(release), "member": m, "to": t, "partition": p, "offset": o})
        for o in (0, 3, 30)
        for p in range(4)
        for m in range(3)
        for t in range(3)
    ]
    world_type = type("Attacked", (Believing,), {"forgeries": attack})

    failures = [failure_of(seed, world_type) for seed in range(60)]

    assert any("back to" in failure for failure in failures)
    assert sum(map(bool, failures)) > 10


def failure_of(seed: int, world_type: type[Forged]) -> str:
    try:
        walk(seed, steps=300, world_type=world_type)
    except BrokenPromiseError as error:
        return str(error)
    return ""
