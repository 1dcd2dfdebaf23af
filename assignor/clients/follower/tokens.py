"""Hand-overs of single partitions: what is heard, seen at the coordinator and committed does to their tokens."""

from collections.abc import Mapping
from dataclasses import replace

from assignor.clients.follower.state import (
    Action,
    Assign,
    Change,
    Commit,
    FollowerState,
    Found,
    Instant,
    Look,
    Looked,
    Mark,
    PartitionKey,
    Step,
    Tell,
    Token,
    Write,
)
from assignor.protocol.acks import Accepted, AnyAck, Follows, Refused, Release, Taken, Void
from assignor.protocol.marks import HandOverMark

_ABSENT = Token(mark=Mark.GONE)
_MAY_TAKE = frozenset({Mark.GONE, Mark.RELEASED})
"""The partition is here under another mark, and no other member can hand it over."""


def read_acks(state: FollowerState, now: Instant) -> Step:
    """Hear what has arrived, once the member knows that it is in the generation.

    For partitions that are reported as released to this member, or taken from it, it looks at the commits.
    """
    if not state.settled or state.waiting or not state.inbox:
        return state, ()
    inbox, answers, hinted = state.inbox, dict[Action, None](), set[PartitionKey]()
    voices: list[AnyAck] = []
    for ack in inbox:
        if ack.generation != state.generation:
            continue
        if isinstance(ack, Release | Taken):
            key = (ack.topic, ack.partition)
            if _is_to_look_at(state, key, ack):
                hinted.add(key)
            elif _is_answered(state, key, ack):
                # It was taken, here, and its old owner does not know yet.
                answers[_taken(state, key, ack.epoch, ack.hop, now)] = None
        else:
            voices.append(ack)
    state = replace(_hear(state, voices), inbox=())
    if not hinted:
        return state, tuple(answers)
    looking = frozenset(hinted)
    return replace(state, looking=looking), (*answers, Look(places=looking))


def looked(state: FollowerState, event: Looked, now: Instant) -> Step:  # noqa: ARG001  # one signature for all
    """Believe the marks of the commits that were looked at, and begin to take what they give to this member.

    Before it is read, a commit of the same offset proves that the generation still lives: a member that was stopped
    for long may hear of a release only after its group has gone on without it.
    """
    asked, state = state.looking, replace(state, looking=frozenset())
    tokens = {key: _seen(state, key, event.found[key]) for key in sorted(asked & event.found.keys())}
    state = replace(state, tokens={**state.tokens, **{key: token for key, token in tokens.items() if token}})
    offered = _offered(state)
    if not offered:
        return state, ()
    offsets = {key: found.offset for key, (found, _) in offered.items()}
    marks = {key: replace(mark, kind="taken") for key, (_, mark) in offered.items()}
    return state, (Commit(offsets=offsets, marks=marks),)


def released(state: FollowerState, offsets: Mapping[PartitionKey, int], now: Instant) -> Step:
    """The commits of what was stopped are accepted: release it to its new owner."""
    tokens, writes = dict(state.tokens), list[Action]()
    for key in sorted(state.marked(Mark.STOPPING)):
        draft = tokens[key].release
        if draft:
            release = replace(draft, offset=offsets[key])
            tokens[key] = Token(
                mark=Mark.RELEASED, hop=release.hop, release=release, sends=1, sent_s=now.monotonic_s
            )
            writes.append(Write(ack=release))
    return replace(state, tokens=tokens), tuple(writes)


def taken(state: FollowerState, now: Instant) -> Step:
    """The commits of what is marked for this member are accepted: read it, and acknowledge it."""
    offered = _offered(state)
    held = {key: Token(mark=Mark.HELD, hop=mark.hop) for key, (_, mark) in offered.items()}
    due = {key: epochs for key, epochs in state.due.items() if key not in offered}
    later = {
        key: tuple(epoch for epoch in state.due.get(key, ()) if epoch > mark.epoch)
        for key, (_, mark) in offered.items()
    }
    state = replace(state, tokens={**state.tokens, **held}, due={**due, **later})
    assign = Assign(places=state.held, offsets={key: found.offset for key, (found, _) in offered.items()})
    acks = tuple(_taken(state, key, mark.epoch, mark.hop, now) for key, (_, mark) in offered.items())
    return state, (assign, *acks, Tell(change=Change.GAINED, places=frozenset(offered)))


def _offered(state: FollowerState) -> dict[PartitionKey, tuple[Found, HandOverMark]]:
    """What is marked for this member and is not taken yet."""
    checked = {key: state.tokens[key].found for key in sorted(state.marked(Mark.CHECK))}
    return {key: (found, found.mark) for key, found in checked.items() if found and found.mark}


def _hear(state: FollowerState, acks: list[AnyAck]) -> FollowerState:
    """Take in what members answer to plans, in the order of the topic.

    The time grows linearly with the number of acknowledgements, since anyone with *Write* on the topic can flood it.
    """
    if not acks:
        return state
    accepted, unmarked, agreed = dict(state.accepted), dict(state.unmarked), state.agreed
    epoch = state.plan.epoch if state.plan else None
    for ack in acks:
        match ack:
            case Follows():
                accepted[ack.member] = max(ack.epoch, accepted.get(ack.member, 0))
                # After each acceptance, not after each batch of them: where batches end differs from member to member.
                if epoch not in (None, agreed) and all(accepted.get(one) == epoch for one in state.needed):
                    agreed = epoch
            case Accepted():
                unmarked[ack.member] = max(ack.epoch, unmarked.get(ack.member, 0))
            case Refused() | Void() if ack.epoch >= accepted.get(ack.member, 0):
                accepted.pop(ack.member, None)
    return replace(state, accepted=accepted, unmarked=unmarked, agreed=agreed)


def _is_to_look_at(state: FollowerState, key: PartitionKey, ack: Release | Taken) -> bool:
    """Whether it may be true that the partition has been given to this member by a plan of its, or taken from it."""
    token = state.tokens.get(key, _ABSENT)
    if ack.member == state.member:
        return False
    if isinstance(ack, Taken):
        return token.mark is Mark.RELEASED and ack.hop >= token.hop
    may_be_given = ack.to == state.member and ack.epoch in state.due.get(key, ())
    return may_be_given and token.mark in _MAY_TAKE and ack.hop > token.hop


def _is_answered(state: FollowerState, key: PartitionKey, ack: Release | Taken) -> bool:
    if ack.member == state.member or isinstance(ack, Taken) or ack.to != state.member:
        return False
    return ack.hop <= state.tokens.get(key, _ABSENT).hop


def _seen(state: FollowerState, key: PartitionKey, found: Found) -> Token | None:
    """What the token becomes by the commit; None: what it is."""
    token, mark = state.tokens.get(key, _ABSENT), found.mark
    if found.offset < 0 or token.mark not in _MAY_TAKE:
        return None
    if mark is not None and _is_given(state, key, token, mark):
        # Also after a release of its own: somebody has taken that, and gives it back.
        return Token(mark=Mark.CHECK, hop=token.hop, found=found)
    if token.mark is Mark.RELEASED and mark != _mark_of(token):
        # Whoever has taken it has committed it before.
        return replace(token, mark=Mark.GONE, release=None)
    return None


def _is_given(state: FollowerState, key: PartitionKey, token: Token, mark: HandOverMark) -> bool:
    is_later = mark.generation == state.generation and mark.hop > token.hop
    return is_later and mark.epoch in state.due.get(key, ())


def _mark_of(token: Token) -> HandOverMark | None:
    release = token.release
    if release is None:
        return None
    return HandOverMark(kind="release", generation=release.generation, epoch=release.epoch, hop=release.hop)


def _taken(state: FollowerState, key: PartitionKey, epoch: int, hop: int, now: Instant) -> Write:
    topic, partition = key
    taken = Taken(
        cluster=state.cluster,
        group=state.settings.group,
        generation=state.generation,
        epoch=epoch,
        member=state.member,
        at_ms=now.wall_ms,
        topic=topic,
        partition=partition,
        hop=hop,
    )
    return Write(ack=taken)
