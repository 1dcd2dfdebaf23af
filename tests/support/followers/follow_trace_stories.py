"""Whole lives of followers that are worth reading from their beginning to their end."""

from dataclasses import replace

from assignor.clients.follower.state import (
    Assigned,
    Committed,
    Event,
    Found,
    Looked,
    Lost,
    PlanSeen,
    Revoked,
    TopicsAway,
)
from assignor.protocol.acks import Applied, Follows
from tests.support.followers.follow_driver import MOVE_1, P1, A, B, assigned, commit_of, head, release
from tests.support.followers.follow_trace_cases import (
    AT_S,
    BACK,
    BEGIN,
    FOUND,
    LATER,
    REFUSED_COMMIT,
    SETTINGS,
    TAKEN_COMMIT,
    documents,
    hear,
)
from tests.support.followers.follow_traces import Json, at, trace

_STORIES: dict[str, tuple[str, list[Event]]] = {
    "story-gives": (
        "member a gives partition 1 away, and lives on until the next rebalance",
        [*BEGIN["follow-gone"][1], hear(Applied(**head(B))), PlanSeen(plan=None), Revoked()],
    ),
    "story-takes": (
        "member b takes partition 1, hears of it twice, and is assigned the same generation twice",
        [
            assigned(B),
            PlanSeen(plan=MOVE_1),
            hear(Follows(**head(A)), Follows(**head(B))),
            hear(release(A, B, partition=1)),
            FOUND,
            TAKEN_COMMIT,
            hear(release(A, B, partition=1)),
            Revoked(),
            assigned(B),
            Revoked(),
            assigned(B, generation=4),
        ],
    ),
    "story-gives-and-gets-back": (
        "partition 1 goes to member b and back within a generation: the second hop",
        [
            *BEGIN["follow-gone"][1],
            PlanSeen(plan=BACK),
            hear(Follows(**head(A, epoch=6)), Follows(**head(B, epoch=6))),
            hear(replace(release(B, A, partition=1, hop=2, offset=90), epoch=6)),
            Looked(found={P1: commit_of(replace(release(B, A, partition=1, hop=2, offset=90), epoch=6))}),
            Committed(accepted=True, offsets={P1: 90}),
        ],
    ),
    "story-forged": (
        "somebody writes releases in the name of others: none is believed, the true one is",
        [
            assigned(B),
            PlanSeen(plan=MOVE_1),
            hear(release("c", B, partition=1, hop=4, offset=9)),
            Looked(found={P1: Found(offset=60)}),
            hear(Follows(**head(A)), Follows(**head(B))),
            hear(release(A, B, partition=1)),
            FOUND,
            TAKEN_COMMIT,
            hear(release("c", B, partition=1, hop=4, offset=9), release("c", B, partition=0, offset=9)),
        ],
    ),
    "story-topics-away-in-the-midst": (
        "the topics go away while a plan is being made: rejoin, and follow the next",
        [
            assigned(A),
            PlanSeen(plan=MOVE_1),
            hear(Follows(**head(A))),
            TopicsAway(),
            Revoked(),
            assigned(A, generation=4),
            PlanSeen(plan=MOVE_1),
            PlanSeen(plan=replace(MOVE_1, epoch=6, base_generation=4)),
        ],
    ),
    "story-slept-through-a-rebalance": (
        "member b wakes up too late: its commit is refused, so it reads nothing",
        [
            assigned(B),
            PlanSeen(plan=MOVE_1),
            hear(release(A, B, partition=1)),
            FOUND,
            REFUSED_COMMIT,
            Lost(),
            Assigned(member="b2", generation=4, places=frozenset({("t", 2)})),
        ],
    ),
}


def stories() -> dict[str, Json]:
    """Every one, by the name of its file."""
    found = {
        name: trace(about, SETTINGS, [], {"as it happens": [(float(n), e) for n, e in enumerate(events)]})
        for name, (about, events) in _STORIES.items()
    }
    found["story-static"] = trace(
        "a member with a group instance id refuses every plan",
        replace(SETTINGS, static=True),
        [],
        {"as it happens": at([assigned(A), PlanSeen(plan=MOVE_1), PlanSeen(plan=LATER)], AT_S)},
    )
    found["story-despite-migration"] = trace(
        "a member that is told so follows whatever a plan says of migration",
        replace(SETTINGS, despite_migration=True),
        [],
        {"as it happens": at([assigned(A), PlanSeen(plan=replace(MOVE_1, migration="possible"))], AT_S)},
    )
    return found


def all_documents() -> dict[str, Json]:
    """Every file, by its name."""
    return {**documents(), **stories()}
