"""A follower whose topics fail becomes a plain consumer until they are back.

It keeps reading its partitions: those that were handed over stay where they are until Kafka's next rebalance. It
rejoins at once only if a hand-over may be half done, because otherwise the partition might have no reader.
"""

from dataclasses import replace

from assignor.clients.follower.state import (
    Action,
    FollowerState,
    Instant,
    Mark,
    Phase,
    Rejoin,
    Step,
    TopicsAway,
    Undelivered,
    Write,
)
from assignor.protocol.acks import Follows, Release, Void


def topics_away(state: FollowerState, event: TopicsAway, now: Instant) -> Step:  # noqa: ARG001  # one signature for all
    """Follow no plan; leave the generation if something may be released to or from this member unheard."""
    # Acceptances may be read again, and then count in their order.
    state = replace(state, offered=None, accepted={}, unmarked={})
    if not state.settled:
        return state, ()
    if _is_in_the_midst(state):
        return _rejoin(state, "the topics are away", now)
    return replace(state, phase=Phase.BASE), ()


def undelivered(state: FollowerState, event: Undelivered, now: Instant) -> Step:
    """Rejoin if a release may be unheard, and withdraw an unheard acceptance. Other lost records are harmless."""
    ack = event.ack
    if not state.settled or ack.generation != state.generation:
        return state, ()
    if isinstance(ack, Release):
        token = state.tokens.get((ack.topic, ack.partition))
        if token is None or token.mark is not Mark.RELEASED or token.hop != ack.hop:
            return state, ()
        return _rejoin(state, "a release did not arrive", now)
    if isinstance(ack, Follows) and state.plan is not None and _is_unheard(state, ack):
        voided = void(state, "the acceptance did not arrive", now)
        return replace(state, phase=Phase.BASE, plan=None), voided
    return state, ()


def void(state: FollowerState, why: str, now: Instant) -> tuple[Action, ...]:
    """Acknowledge that the plan is no longer followed; without a plan, do nothing."""
    if state.plan is None:
        return ()
    ack = Void(
        cluster=state.plan.cluster,
        group=state.settings.group,
        generation=state.generation,
        epoch=state.plan.epoch,
        member=state.member,
        at_ms=now.wall_ms,
        why=why,
    )
    return (Write(ack=ack),)


def _is_in_the_midst(state: FollowerState) -> bool:
    return bool(state.marked(Mark.RELEASED)) or (state.phase is Phase.FOLLOW and not state.applied)


def _is_unheard(state: FollowerState, ack: Follows) -> bool:
    # The member's own acceptance has arrived once it was read on the topic, whatever the client reports.
    following = state.phase is Phase.FOLLOW and not state.applied and state.decided == ack.epoch
    return following and state.accepted.get(state.member) != ack.epoch


def _rejoin(state: FollowerState, why: str, now: Instant) -> Step:
    voided = void(state, why, now)
    return replace(state, phase=Phase.REJOIN, plan=None), (*voided, Rejoin())
