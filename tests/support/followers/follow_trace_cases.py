"""The states of a follower and all that can happen in each, and the lives that are worth reading as a whole.

Member a has partitions 0 and 1, member b has 2, and the plan gives 1 to b.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from assignor.clients.follower.rules import advance
from assignor.clients.follower.state import (
    AcksSeen,
    Assigned,
    Committed,
    Event,
    FollowerState,
    Found,
    Instant,
    Look,
    Looked,
    Lost,
    PlanSeen,
    Revoked,
    Settings,
    Tick,
    TopicsAway,
    Undelivered,
)
from assignor.protocol.acks import Accepted, AnyAck, Applied, Follows, Refused, Release, Taken, Void
from tests.support.followers.follow_driver import (
    BASE,
    MOVE_1,
    P1,
    A,
    B,
    assigned,
    commit_of,
    head,
    key_of,
    release,
    taken,
)
from tests.support.followers.follow_plans import GROUP, plan
from tests.support.followers.follow_traces import Json, Moment, at, trace

SETTINGS = Settings(group=GROUP, take_timeout_s=9.0, doubt_timeout_s=6.0)
AT_S = 1.0
"""When the state of a file is reached; what happens then comes a quarter of a second later."""

LATER = plan(BASE, {A: [0], B: [1, 2]}, epoch=6, generation=3)
BACK = plan(BASE, BASE, epoch=6, generation=3)
TAKEN_COMMIT = Committed(accepted=True, offsets={P1: 70})
REFUSED_COMMIT = Committed(accepted=False, offsets={P1: 70})
OWN = Undelivered(ack=Follows(**head(A)))
FOUND = Looked(found={P1: commit_of(release(A, B, partition=1))})
"""The old owner has committed partition 1 with its mark."""
FOUND_TAKEN = Looked(found={P1: commit_of(taken(B, partition=1))})
LOST_RELEASE = Undelivered(ack=release(A, B, partition=1))


def hear(*acks: AnyAck) -> AcksSeen:
    return AcksSeen(acks=acks)


BEGIN: Mapping[str, tuple[str, Sequence[Event]]] = {
    "out": ("not in the group yet", []),
    "base": ("member a, in a generation, without a plan", [assigned(A)]),
    "base-of-the-other": ("member b, in a generation, without a plan", [assigned(B)]),
    "follow-alone": (
        "member a has accepted the plan; nobody has read it",
        [assigned(A), PlanSeen(plan=MOVE_1)],
    ),
    "follow-waiting": (
        "member a has accepted the plan, and has read so on the topic; member b has not",
        [assigned(A), PlanSeen(plan=MOVE_1), hear(Follows(**head(A)))],
    ),
    "follow-stopping": (
        "all have accepted: member a has stopped partition 1, and its commit is under way",
        [assigned(A), PlanSeen(plan=MOVE_1), hear(Follows(**head(A)), Follows(**head(B)))],
    ),
    "follow-released": (
        "member a has released partition 1 to member b",
        [assigned(A), PlanSeen(plan=MOVE_1), hear(Follows(**head(A)), Follows(**head(B))), TAKEN_COMMIT],
    ),
    "follow-gone": (
        "member a has given partition 1 to member b, and has applied the plan",
        [
            assigned(A),
            PlanSeen(plan=MOVE_1),
            hear(Follows(**head(A)), Follows(**head(B))),
            TAKEN_COMMIT,
            hear(taken(B, partition=1)),
            FOUND_TAKEN,
        ],
    ),
    "follow-wanting": (
        "member b has accepted the plan, and waits for partition 1",
        [assigned(B), PlanSeen(plan=MOVE_1), hear(Follows(**head(A)), Follows(**head(B)))],
    ),
    "follow-looking": (
        "partition 1 is said to be released to member b, which asks what the group has committed of it",
        [assigned(B), PlanSeen(plan=MOVE_1), hear(release(A, B, partition=1))],
    ),
    "follow-checking": (
        "the commit of partition 1 is marked for member b, whose own commit of it is under way",
        [assigned(B), PlanSeen(plan=MOVE_1), hear(release(A, B, partition=1)), FOUND],
    ),
    "follow-holding": (
        "member b has taken partition 1, and has applied the plan",
        [assigned(B), PlanSeen(plan=MOVE_1), hear(release(A, B, partition=1)), FOUND, TAKEN_COMMIT],
    ),
    "base-holding": (
        "member b has taken partition 1, and the plan is over",
        [
            assigned(B),
            PlanSeen(plan=MOVE_1),
            hear(release(A, B, partition=1)),
            FOUND,
            TAKEN_COMMIT,
            PlanSeen(plan=None),
        ],
    ),
    "out-pending": (
        "the commit of a hand-over was refused to member a, and Kafka has not said why",
        [assigned(A), PlanSeen(plan=MOVE_1), hear(Follows(**head(A)), Follows(**head(B))), REFUSED_COMMIT],
    ),
    "rejoin": (
        "member a leaves the generation: its release did not arrive",
        [
            assigned(A),
            PlanSeen(plan=MOVE_1),
            hear(Follows(**head(A)), Follows(**head(B))),
            TAKEN_COMMIT,
            LOST_RELEASE,
        ],
    ),
    "out-revoked": (
        "member a had given partition 1 away when Kafka took everything back",
        [
            assigned(A),
            PlanSeen(plan=MOVE_1),
            hear(Follows(**head(A)), Follows(**head(B))),
            TAKEN_COMMIT,
            hear(taken(B, partition=1)),
            FOUND_TAKEN,
            Revoked(),
        ],
    ),
    "out-lost": ("member a has lost its membership", [assigned(A), Lost()]),
}
_COMMITTING = {"follow-stopping", "follow-checking"}
_AS_B = {"base-of-the-other", "follow-wanting", "follow-checking", "follow-holding", "base-holding"}

COMMITTED: Mapping[str, Sequence[Event]] = {
    "the commit is accepted": [TAKEN_COMMIT],
    "the commit is refused": [REFUSED_COMMIT],
    "Kafka revokes before the answer, so the commit is given up": [REFUSED_COMMIT, Revoked()],
    "the membership is lost before the answer, so the commit is given up": [REFUSED_COMMIT, Lost()],
    "the same generation is assigned before the answer, so the commit is given up": [
        REFUSED_COMMIT,
        Revoked(),
        assigned(A),
    ],
}
_MARK_OF_LAST = replace(release(A, B, partition=1), generation=2)
LOOKED: Mapping[str, Sequence[Event]] = {
    "the commit has the mark of the old owner": [FOUND],
    "the commit has the mark of this member, which has been here before": [FOUND_TAKEN],
    "the commit has no mark": [Looked(found={P1: Found(offset=70)})],
    "the commit has the mark of another generation": [Looked(found={P1: commit_of(_MARK_OF_LAST)})],
    "the commit has the mark of another plan": [
        Looked(found={P1: commit_of(replace(release(A, B, partition=1), epoch=4))})
    ],
    "the commit has the mark of a later hop": [
        Looked(found={P1: commit_of(release(A, B, partition=1, hop=3, offset=90))})
    ],
    "there is no commit": [Looked(found={P1: Found(offset=-1001)})],
    "nobody can say what was committed": [Looked(found={})],
    "Kafka revokes before the answer": [Revoked()],
    "Kafka revokes before the answer, and assigns the same generation": [Revoked(), assigned(B), FOUND],
    "the membership is lost before the answer": [Lost()],
}


def happenings(name: str) -> Mapping[str, Sequence[Event]]:
    """What can happen to a member in that state, one entry for each."""
    if name in _COMMITTING:
        again = assigned(B if name in _AS_B else A)
        return {
            what: [again if isinstance(e, Assigned) else e for e in events]
            for what, events in COMMITTED.items()
        }
    if name == "follow-looking":
        return LOOKED
    me, other = (B, A) if name in _AS_B else (A, B)
    nearly_base = {**BASE, me: BASE[me][:1] if me == A else [2, 3]}
    return {
        "the same generation is assigned, a second time": [assigned(me)],
        "the next generation is assigned": [assigned(me, generation=4)],
        "another member id is assigned": [Assigned(member="c", generation=3, places=assigned(me).places)],
        "Kafka revokes": [Revoked()],
        "Kafka revokes, and assigns the same generation": [Revoked(), assigned(me)],
        "the membership is lost": [Lost()],
        "the plan is valid": [PlanSeen(plan=MOVE_1)],
        "a plan with a later epoch is valid": [PlanSeen(plan=LATER)],
        "a plan with a later epoch undoes the last": [PlanSeen(plan=BACK)],
        "no plan is valid": [PlanSeen(plan=None)],
        "a plan of the last generation is valid": [
            PlanSeen(plan=replace(MOVE_1, epoch=7, base_generation=2))
        ],
        "a plan of the next generation is valid": [
            PlanSeen(plan=replace(MOVE_1, epoch=7, base_generation=4))
        ],
        "a plan without this member is valid": [
            PlanSeen(plan=plan({other: BASE[other]}, {other: BASE[other]}, epoch=7, generation=3))
        ],
        "a plan for other partitions of this member is valid": [
            PlanSeen(plan=plan(nearly_base, nearly_base, epoch=7, generation=3))
        ],
        "a plan that drops a partition is valid": [
            PlanSeen(plan=plan(BASE, {A: [0], B: [2]}, epoch=7, generation=3))
        ],
        "a plan that does not know about migration is valid": [
            PlanSeen(plan=replace(MOVE_1, epoch=7, migration="unknown"))
        ],
        "a plan while migration is possible is valid": [
            PlanSeen(plan=replace(MOVE_1, epoch=7, migration="possible"))
        ],
        "both accept": [hear(Follows(**head(A)), Follows(**head(B)))],
        "the other accepts": [hear(Follows(**head(other)))],
        "the other accepts, and does not mark its commits": [hear(Accepted(**head(other)))],
        "the other accepts a plan to come, and does not mark its commits": [
            hear(Accepted(**head(other, epoch=6))),
            PlanSeen(plan=LATER),
        ],
        "the other accepts another epoch": [hear(Follows(**head(other, epoch=4)))],
        "the other accepts in another generation": [hear(Follows(**head(other, generation=2)))],
        "the other accepts and refuses": [
            hear(Follows(**head(other)), Refused(**head(other), why="static"), Follows(**head(me)))
        ],
        "the other accepts and voids": [
            hear(Follows(**head(other)), Void(**head(other), why="revoked"), Follows(**head(me)))
        ],
        "the other has applied": [hear(Applied(**head(other)))],
        "partition 1 is released to this member": [hear(release(other, me, partition=1))],
        "partition 1 is released to this member at the second hop": [
            hear(release(other, me, partition=1, hop=2))
        ],
        "partition 1 is released to somebody else": [hear(release(other, "c", partition=1, hop=2))],
        "partition 1 is released to this member in another generation": [
            hear(replace(release(other, me, partition=1, hop=2), generation=2))
        ],
        "partition 1 is taken": [hear(taken(other, partition=1))],
        "partition 1 is taken in another generation": [
            hear(replace(taken(other, partition=1), generation=2))
        ],
        "Kafka revokes, and a release in the next generation is read before that is assigned": [
            Revoked(),
            hear(replace(release(other, me, partition=3), generation=4)),
            assigned(me, generation=4),
            Committed(accepted=True, offsets={("t", 3): 70}),
        ],
        "the topics are away": [TopicsAway()],
        "the topics are away, and are back": [TopicsAway(), PlanSeen(plan=MOVE_1)],
        "the own acceptance did not arrive": [Undelivered(ack=Follows(**head(me)))],
        "the own release did not arrive": [Undelivered(ack=release(me, other, partition=1))],
        "a release of another hop did not arrive": [Undelivered(ack=release(me, other, partition=1, hop=2))],
        "an acknowledgement of an earlier generation did not arrive": [
            Undelivered(ack=replace(release(me, other, partition=1), generation=2))
        ],
        "time passes": [Tick()],
    }


def _answered(begin: Sequence[Event], events: Sequence[Event]) -> Iterator[Event]:
    """The events, and behind each that makes the member look, unless another answer follows, that all of it is true."""
    state, now = FollowerState(settings=SETTINGS), Instant(monotonic_s=AT_S, wall_ms=0)
    for event in begin:
        state, _ = advance(state, event, now)
    for event, following in pairwise([*events, None]):
        assert event is not None
        yield event
        state, actions = advance(state, event, now)
        is_asked = any(isinstance(action, Look) for action in actions)
        if is_asked and not isinstance(following, Looked | Revoked | Lost):
            acks = event.acks if isinstance(event, AcksSeen) else ()
            said = {key_of(ack): commit_of(ack) for ack in acks if isinstance(ack, Release | Taken)}
            answer = Looked(found={**FOUND.found, **said})
            yield answer
            state, _ = advance(state, answer, now)


def _state(name: str) -> Json:
    about, begin = BEGIN[name]
    then = {
        what: at(list(_answered(begin, events)), AT_S + 0.25) for what, events in happenings(name).items()
    }
    return trace(about, SETTINGS, at(begin, AT_S), {**then, **_later(name)})


def _later(name: str) -> dict[str, list[Moment]]:
    """What a member does that only waits."""
    if name == "follow-released":
        return {
            "nobody takes the partition": [(AT_S + wait_s, Tick()) for wait_s in (2.75, 3.0, 6.0, 8.75, 9.0)]
        }
    if name == "out-pending":
        return {"Kafka never says why": [(AT_S + wait_s, Tick()) for wait_s in (5.75, 6.0)]}
    return {}


def documents() -> dict[str, Json]:
    """The file of each state, by its name."""
    return {name: _state(name) for name in BEGIN}
