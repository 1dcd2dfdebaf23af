"""The follower's state under any events: whatever others write, it keeps its own promises."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from assignor.clients.follower.rules import advance
from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assign,
    Assigned,
    Commit,
    Committed,
    Event,
    FollowerState,
    Found,
    Instant,
    Look,
    Looked,
    Lost,
    Mark,
    PartitionKey,
    Phase,
    PlanSeen,
    Revoked,
    Settings,
    Tick,
    TopicsAway,
    Unassign,
    Undelivered,
    Write,
)
from assignor.protocol.acks import Applied, Follows, Refused, Release, Taken, Void
from assignor.protocol.marks import HandOverMark
from tests.support.followers.follow_plans import CLUSTER, GROUP, plan

members = st.sampled_from(["a", "b"])
numbers = st.integers(0, 2)
small = st.integers(1, 3)
heads = {
    "cluster": st.just(CLUSTER),
    "group": st.just(GROUP),
    "generation": st.integers(1, 2),
    "epoch": small,
    "member": members,
    "at_ms": st.just(0),
}
spots = {"topic": st.just("t"), "partition": numbers, "hop": small}
any_ack = st.one_of(
    st.builds(Follows, **heads),
    st.builds(Applied, **heads),
    st.builds(Refused, **heads, why=st.just("…")),
    st.builds(Void, **heads, why=st.just("…")),
    st.builds(Taken, **heads, **spots),
    st.builds(Release, **heads, **spots, to=members, offset=st.integers(0, 9)),
)
places = st.frozensets(st.tuples(st.just("t"), numbers), max_size=3)
targets = st.lists(members, min_size=3, max_size=3).map(
    lambda owners: {name: [p for p, owner in enumerate(owners) if owner == name] for name in "ab"}
)
plans = st.builds(plan, targets, targets, epoch=small, generation=st.integers(1, 2))
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Assigned, member=members, generation=st.integers(1, 2), places=places),
    st.builds(Revoked),
    st.builds(Lost),
    st.builds(PlanSeen, plan=st.none() | plans),
    st.builds(AcksSeen, acks=st.lists(any_ack, max_size=4).map(tuple)),
    st.builds(TopicsAway),
    st.builds(Undelivered, ack=any_ack),
    st.builds(Tick),
)


marks = st.builds(
    HandOverMark,
    kind=st.sampled_from(["release", "taken"]),
    generation=st.integers(1, 2),
    epoch=small,
    hop=small,
)
commits = st.builds(Found, offset=st.integers(-1, 9), mark=st.none() | marks)
found_of = st.dictionaries(st.tuples(st.just("t"), numbers), commits)
history_step = st.tuples(events, st.booleans(), found_of, st.sampled_from([0.0, 1.0, 4.0]))


@given(st.lists(history_step, max_size=25))
def test_follower_keeps_its_promises_whatever_it_hears(
    history: Sequence[tuple[Event, bool, dict[PartitionKey, Found], float]],
) -> None:
    state = FollowerState(settings=Settings(group=GROUP))
    now_s, reading = 0.0, frozenset[tuple[str, int]]()

    for event, accepted, found, pause_s in history:
        now_s += pause_s
        todo: list[Event] = [event]
        while todo:
            state, actions = advance(state, todo.pop(), Instant(monotonic_s=now_s, wall_ms=0))
            made = [action for action in actions if isinstance(action, Commit)]
            assert sum(isinstance(action, Commit | Look) for action in actions) <= 1
            reading = _reading(reading, actions)
            for look in (action for action in actions if isinstance(action, Look)):
                answer = {place: found[place] for place in look.places & found.keys()}
                todo.append(Looked(found=answer))
            for commit in made:
                assert commit.marks.keys() == commit.offsets.keys()
                offsets = {place: offset or 0 for place, offset in commit.offsets.items()}
                assert not reading & offsets.keys()
                todo.append(Committed(accepted=accepted, offsets=offsets))
            _check_releases(actions, reading)

        assert reading == (frozenset() if state.phase is Phase.OUT else state.held)
        assert not reading & state.marked(Mark.RELEASED)


def _reading(before: frozenset[tuple[str, int]], actions: Sequence[Action]) -> frozenset[tuple[str, int]]:
    for action in actions:
        if isinstance(action, Assign):
            before = action.places
        elif isinstance(action, Unassign):
            before = frozenset()
    return before


def _check_releases(actions: Sequence[Action], reading: frozenset[tuple[str, int]]) -> None:
    for action in actions:
        if isinstance(action, Write) and isinstance(action.ack, Release):
            assert (action.ack.topic, action.ack.partition) not in reading


NAMES = ["a", "b", "c"]
CHAIN = plan({"a": [0], "b": [1], "c": []}, {"a": [], "b": [0], "c": [1]}, epoch=2)
words = st.tuples(st.sampled_from([Follows, Follows, Refused, Void]), st.sampled_from(NAMES), small)
"""Kind, member, epoch."""


@given(st.lists(st.lists(words, max_size=4), max_size=8))
def test_old_owner_begins_at_the_record_by_which_all_follow_wherever_its_batches_end(
    batches: Sequence[Sequence[tuple[type[Follows | Refused | Void], str, int]]],
) -> None:
    now = Instant(monotonic_s=0.0, wall_ms=0)
    state = FollowerState(settings=Settings(group=GROUP))
    state, _ = advance(state, Assigned(member="a", generation=1, places=frozenset({("t", 0)})), now)
    state, _ = advance(state, PlanSeen(plan=CHAIN), now)
    follows = dict.fromkeys(NAMES, 0)
    agreed = False

    for batch in batches:
        acks = []
        for kind, member, epoch in batch:
            head = {"cluster": CLUSTER, "group": GROUP, "generation": 1, "epoch": epoch, "member": member}
            acks.append(kind(**head, at_ms=0, **({} if kind is Follows else {"why": "…"})))
            if kind is Follows:
                follows[member] = max(epoch, follows[member])
            elif epoch >= follows[member]:
                follows[member] = 0
            agreed = agreed or set(follows.values()) == {2}
        state, actions = advance(state, AcksSeen(acks=tuple(acks)), now)

        gives = any(isinstance(action, Commit) for action in actions)
        assert gives == (agreed and follows["b"] == 2)
        if gives:
            return
