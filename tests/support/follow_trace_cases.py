"""The states of a follower and all that can happen in each, and the lives that are worth reading as a whole.

Member a has partitions 0 and 1, member b has 2, and the plan gives 1 to b.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assignor.clients.follower.state import (
    AcksSeen,
    Assigned,
    Committed,
    Event,
    Lost,
    PlanSeen,
    Revoked,
    Settings,
    Tick,
    TopicsAway,
    Undelivered,
)
from assignor.protocol.acks import Accepted, AnyAck, Applied, Refused, Void
from tests.support.follow_driver import BASE, MOVE_1, P1, A, B, assigned, head, release, taken
from tests.support.follow_plans import GROUP, plan
from tests.support.follow_traces import Json, Moment, trace

SETTINGS = Settings(group=GROUP, take_timeout_s=9.0, doubt_timeout_s=6.0)
AT_S = 1.0
"""When the state of a file is reached; what happens then comes a quarter of a second later."""

LATER = plan(BASE, {A: [0], B: [1, 2]}, epoch=6, generation=3)
BACK = plan(BASE, BASE, epoch=6, generation=3)
TAKEN_COMMIT = Committed(accepted=True, offsets={P1: 70})
REFUSED_COMMIT = Committed(accepted=False, offsets={P1: 70})
OWN = Undelivered(ack=Accepted(**head(A)))
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
        [assigned(A), PlanSeen(plan=MOVE_1), hear(Accepted(**head(A)))],
    ),
    "follow-stopping": (
        "all have accepted: member a has stopped partition 1, and its commit is under way",
        [assigned(A), PlanSeen(plan=MOVE_1), hear(Accepted(**head(A)), Accepted(**head(B)))],
    ),
    "follow-released": (
        "member a has released partition 1 to member b",
        [assigned(A), PlanSeen(plan=MOVE_1), hear(Accepted(**head(A)), Accepted(**head(B))), TAKEN_COMMIT],
    ),
    "follow-gone": (
        "member a has given partition 1 to member b, and has applied the plan",
        [
            assigned(A),
            PlanSeen(plan=MOVE_1),
            hear(Accepted(**head(A)), Accepted(**head(B))),
            TAKEN_COMMIT,
            hear(taken(B, partition=1)),
        ],
    ),
    "follow-wanting": (
        "member b has accepted the plan, and waits for partition 1",
        [assigned(B), PlanSeen(plan=MOVE_1), hear(Accepted(**head(A)), Accepted(**head(B)))],
    ),
    "follow-checking": (
        "partition 1 is released to member b, whose commit of it is under way",
        [assigned(B), PlanSeen(plan=MOVE_1), hear(release(A, B, partition=1))],
    ),
    "follow-holding": (
        "member b has taken partition 1, and has applied the plan",
        [assigned(B), PlanSeen(plan=MOVE_1), hear(release(A, B, partition=1)), TAKEN_COMMIT],
    ),
    "base-holding": (
        "member b has taken partition 1, and the plan is over",
        [
            assigned(B),
            PlanSeen(plan=MOVE_1),
            hear(release(A, B, partition=1)),
            TAKEN_COMMIT,
            PlanSeen(plan=None),
        ],
    ),
    "out-pending": (
        "the commit of a hand-over was refused to member a, and Kafka has not said why",
        [assigned(A), PlanSeen(plan=MOVE_1), hear(Accepted(**head(A)), Accepted(**head(B))), REFUSED_COMMIT],
    ),
    "rejoin": (
        "member a leaves the generation: its release did not arrive",
        [
            assigned(A),
            PlanSeen(plan=MOVE_1),
            hear(Accepted(**head(A)), Accepted(**head(B))),
            TAKEN_COMMIT,
            LOST_RELEASE,
        ],
    ),
    "out-revoked": (
        "member a had given partition 1 away when Kafka took everything back",
        [
            assigned(A),
            PlanSeen(plan=MOVE_1),
            hear(Accepted(**head(A)), Accepted(**head(B))),
            TAKEN_COMMIT,
            hear(taken(B, partition=1)),
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
}


def happenings(name: str) -> Mapping[str, Sequence[Event]]:
    """What can happen to a member in that state, one entry for each."""
    if name in _COMMITTING:
        return COMMITTED
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
        "both accept": [hear(Accepted(**head(A)), Accepted(**head(B)))],
        "the other accepts": [hear(Accepted(**head(other)))],
        "the other accepts another epoch": [hear(Accepted(**head(other, epoch=4)))],
        "the other accepts in another generation": [hear(Accepted(**head(other, generation=2)))],
        "the other accepts and refuses": [
            hear(Accepted(**head(other)), Refused(**head(other), why="static"), Accepted(**head(me)))
        ],
        "the other accepts and voids": [
            hear(Accepted(**head(other)), Void(**head(other), why="revoked"), Accepted(**head(me)))
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
        "the own acceptance did not arrive": [Undelivered(ack=Accepted(**head(me)))],
        "the own release did not arrive": [Undelivered(ack=release(me, other, partition=1))],
        "a release of another hop did not arrive": [Undelivered(ack=release(me, other, partition=1, hop=2))],
        "an acknowledgement of an earlier generation did not arrive": [
            Undelivered(ack=replace(release(me, other, partition=1), generation=2))
        ],
        "time passes": [Tick()],
    }


def _at(events: Sequence[Event], at_s: float) -> list[Moment]:
    return [(at_s, event) for event in events]


def _state(name: str) -> Json:
    about, begin = BEGIN[name]
    then = {what: _at(events, AT_S + 0.25) for what, events in happenings(name).items()}
    return trace(about, SETTINGS, _at(begin, AT_S), {**then, **_later(name)})


def _later(name: str) -> dict[str, list[Moment]]:
    """What a member does that only waits."""
    if name == "follow-released":
        return {
            "nobody takes the partition": [(AT_S + wait_s, Tick()) for wait_s in (2.75, 3.0, 6.0, 8.75, 9.0)]
        }
    if name == "out-pending":
        return {"Kafka never says why": [(AT_S + wait_s, Tick()) for wait_s in (5.75, 6.0)]}
    return {}


def _stories() -> dict[str, Json]:
    one_after_the_other: dict[str, list[Event]] = {
        "story-gives": [*BEGIN["follow-gone"][1], hear(Applied(**head(B))), PlanSeen(plan=None), Revoked()],
        "story-takes": [
            assigned(B),
            PlanSeen(plan=MOVE_1),
            hear(Accepted(**head(A)), Accepted(**head(B))),
            hear(release(A, B, partition=1)),
            TAKEN_COMMIT,
            hear(release(A, B, partition=1)),
            Revoked(),
            assigned(B),
            Revoked(),
            assigned(B, generation=4),
        ],
        "story-gives-and-gets-back": [
            *BEGIN["follow-gone"][1],
            PlanSeen(plan=BACK),
            hear(Accepted(**head(A, epoch=6)), Accepted(**head(B, epoch=6))),
            hear(replace(release(B, A, partition=1, hop=2, offset=90), epoch=6)),
            Committed(accepted=True, offsets={P1: 90}),
        ],
        "story-topics-away-in-the-midst": [
            assigned(A),
            PlanSeen(plan=MOVE_1),
            hear(Accepted(**head(A))),
            TopicsAway(),
            Revoked(),
            assigned(A, generation=4),
            PlanSeen(plan=MOVE_1),
            PlanSeen(plan=replace(MOVE_1, epoch=6, base_generation=4)),
        ],
        "story-slept-through-a-rebalance": [
            assigned(B),
            PlanSeen(plan=MOVE_1),
            hear(release(A, B, partition=1)),
            REFUSED_COMMIT,
            Lost(),
            Assigned(member="b2", generation=4, places=frozenset({("t", 2)})),
        ],
    }
    about = {
        "story-gives": "member a gives partition 1 away, and lives on until the next rebalance",
        "story-takes": "member b takes partition 1, hears of it twice, and is assigned the same generation twice",
        "story-gives-and-gets-back": "partition 1 goes to member b and back within a generation: the second hop",
        "story-topics-away-in-the-midst": "the topics go away while a plan is being made: rejoin, and follow the next",
        "story-slept-through-a-rebalance": "member b wakes up too late: its commit is refused, so it reads nothing",
    }
    stories = {
        name: trace(
            about[name], SETTINGS, [], {"as it happens": [(float(n), e) for n, e in enumerate(events)]}
        )
        for name, events in one_after_the_other.items()
    }
    stories["story-static"] = trace(
        "a member with a group instance id refuses every plan",
        replace(SETTINGS, static=True),
        [],
        {"as it happens": _at([assigned(A), PlanSeen(plan=MOVE_1), PlanSeen(plan=LATER)], AT_S)},
    )
    stories["story-despite-migration"] = trace(
        "a member that is told so follows whatever a plan says of migration",
        replace(SETTINGS, despite_migration=True),
        [],
        {"as it happens": _at([assigned(A), PlanSeen(plan=replace(MOVE_1, migration="possible"))], AT_S)},
    )
    return stories


def documents() -> dict[str, Json]:
    """Every file, by its name."""
    return {**{name: _state(name) for name in BEGIN}, **_stories()}
