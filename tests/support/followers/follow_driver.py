"""One follower's state, driven by hand, on a plan that gives partition 1 from member a to member b."""

from typing import Any, TypeVar

from assignor.clients.follower.rules import advance
from assignor.clients.follower.state import (
    AcksSeen,
    Action,
    Assigned,
    Committed,
    Event,
    FollowerState,
    Found,
    Instant,
    Look,
    Looked,
    PartitionKey,
    PlanSeen,
    Settings,
    Tick,
    Write,
)
from assignor.protocol.acks import AnyAck, Follows, Release, Taken
from assignor.protocol.marks import HandOverMark
from tests.support.followers.follow_plans import CLUSTER, GROUP, plan

A, B = "a", "b"
P0, P1, P2 = ("t", 0), ("t", 1), ("t", 2)
BASE = {A: [0, 1], B: [2]}
MOVE_1 = plan(BASE, {A: [0], B: [1, 2]}, epoch=5, generation=3)
KindOfAction = TypeVar("KindOfAction", bound=Action)


class Driver:
    """One follower; `do` is one event, and `commit` its answer to a commit."""

    def __init__(self, *, static: bool = False, despite_migration: bool = False) -> None:
        settings = Settings(
            group=GROUP, static=static, take_timeout_s=10.0, despite_migration=despite_migration
        )
        self.state = FollowerState(settings=settings)
        self.now_s = 0.0
        self.actions: tuple[Action, ...] = ()
        self.committed: dict[PartitionKey, Found] = {}
        """By the members of the group."""

    def do(self, *events: Event) -> tuple[Action, ...]:
        done: list[Action] = []
        for event in events:
            self.state, actions = advance(self.state, event, Instant(monotonic_s=self.now_s, wall_ms=1_000))
            done += actions
        self.actions = tuple(done)
        return self.actions

    def hear(self, *acks: AnyAck) -> tuple[Action, ...]:
        """Acknowledgements that are true: what they speak of was committed, and is found."""
        self.committed |= {key_of(ack): commit_of(ack) for ack in acks if isinstance(ack, Release | Taken)}
        done = self.do(AcksSeen(acks=acks))
        asked = [action.places for action in done if isinstance(action, Look)]
        for places in asked:
            found = {place: self.committed[place] for place in places if place in self.committed}
            done += self.do(Looked(found=found))
        self.actions = done
        return done

    def hear_of_no_commit(self, *acks: AnyAck) -> tuple[Action, ...]:
        """Acknowledgements that anybody may have written."""
        return self.do(AcksSeen(acks=acks))

    def wait(self, seconds: float) -> tuple[Action, ...]:
        self.now_s += seconds
        return self.do(Tick())

    def written(self) -> list[AnyAck]:
        return [action.ack for action in self.actions if isinstance(action, Write)]

    def the(self, kind: type[KindOfAction]) -> KindOfAction:
        (found,) = [action for action in self.actions if isinstance(action, kind)]
        return found

    def kinds(self) -> list[type[Any]]:
        return [type(action) for action in self.actions]


def head(member: str, *, epoch: int = 5, generation: int = 3) -> dict[str, Any]:
    return {
        "cluster": CLUSTER,
        "group": GROUP,
        "generation": generation,
        "epoch": epoch,
        "member": member,
        "at_ms": 1_000,
    }


def release(old_owner: str, to: str, *, partition: int, hop: int = 1, offset: int = 70) -> Release:
    return Release(**head(old_owner), to=to, topic="t", partition=partition, hop=hop, offset=offset)


def taken(member: str, *, partition: int, hop: int = 1) -> Taken:
    return Taken(**head(member), topic="t", partition=partition, hop=hop)


def key_of(ack: Release | Taken) -> PartitionKey:
    return ack.topic, ack.partition


def mark_of(ack: Release | Taken) -> HandOverMark:
    kind = "release" if isinstance(ack, Release) else "taken"
    return HandOverMark(kind=kind, generation=ack.generation, epoch=ack.epoch, hop=ack.hop)


def commit_of(ack: Release | Taken) -> Found:
    """What its member had committed before it wrote that."""
    return Found(offset=ack.offset if isinstance(ack, Release) else 70, mark=mark_of(ack))


def assigned(member: str, *, generation: int = 3) -> Assigned:
    return Assigned(member=member, generation=generation, places=frozenset(("t", p) for p in BASE[member]))


def following_old_owner() -> Driver:
    """Member a, which has accepted the plan, and has read so on the topic."""
    driver = Driver()
    driver.do(assigned(A), PlanSeen(plan=MOVE_1))
    driver.hear(Follows(**head(A)))
    return driver


def following_new_owner() -> Driver:
    """Member b, which has accepted the plan."""
    driver = Driver()
    driver.do(assigned(B), PlanSeen(plan=MOVE_1))
    return driver


def having_released() -> Driver:
    """Member a, after its release of partition 1."""
    driver = following_old_owner()
    driver.hear(Follows(**head(B)))
    driver.do(Committed(accepted=True, offsets={P1: 70}))
    return driver
