"""Hand-overs of single partitions: what acknowledgements and answered commits do to their tokens."""

from collections.abc import Mapping
from dataclasses import replace

from assignor.clients.follower.state import (
    Action,
    Assign,
    Change,
    Commit,
    FollowerState,
    Instant,
    Mark,
    PartitionKey,
    Step,
    Tell,
    Token,
    Write,
)
from assignor.protocol.acks import Accepted, AnyAck, Refused, Release, Taken, Void

_ABSENT = Token(mark=Mark.GONE)
_MAY_TAKE = frozenset({Mark.GONE, Mark.RELEASED, Mark.CHECK})
"""With another mark, the partition is here, and nobody else can give it."""


def read_acks(state: FollowerState, now: Instant) -> Step:
    """Look at what has arrived, once the member knows that it is in the generation.

    Before what was released to it is read, a commit of the same offset proves that the generation still lives:
    a member that was stopped for long may hear of a release only after its group has gone on without it.
    """
    if not state.settled or state.waiting or not state.inbox:
        return state, ()
    inbox, actions = state.inbox, list[Action]()
    state = replace(state, inbox=())
    for ack in inbox:
        is_echo = ack.member == state.member and isinstance(ack, Release | Taken)
        if ack.generation == state.generation and not is_echo:
            state, more = _read(state, ack, now)
            actions += more
    offered = _offered(state)
    if offered:
        actions.append(Commit(offsets={key: release.offset for key, release in offered.items()}))
    return state, tuple(actions)


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
    """The commits of what was released to this member are accepted: read it, and acknowledge it."""
    releases = _offered(state)
    held = {key: Token(mark=Mark.HELD, hop=release.hop) for key, release in releases.items()}
    state = replace(state, tokens={**state.tokens, **held})
    assign = Assign(places=state.held, offsets={key: release.offset for key, release in releases.items()})
    acks = tuple(_taken(state, release, now) for release in releases.values())
    return state, (assign, *acks, Tell(change=Change.GAINED, places=frozenset(releases)))


def _offered(state: FollowerState) -> dict[PartitionKey, Release]:
    """What was released to this member and is not taken yet."""
    checked = {key: state.tokens[key].release for key in sorted(state.marked(Mark.CHECK))}
    return {key: release for key, release in checked.items() if release}


def _read(state: FollowerState, ack: AnyAck, now: Instant) -> Step:
    match ack:
        case Accepted():
            newest = max(ack.epoch, state.accepted.get(ack.member, 0))
            return _agreed(replace(state, accepted={**state.accepted, ack.member: newest})), ()
        case Refused() | Void() if ack.epoch >= state.accepted.get(ack.member, 0):
            others = {member: epoch for member, epoch in state.accepted.items() if member != ack.member}
            return replace(state, accepted=others), ()
        case Taken():
            return _read_taken(state, ack), ()
        case Release() if ack.to == state.member:
            return _read_release(state, ack, now)
        case _:
            return state, ()


def _agreed(state: FollowerState) -> FollowerState:
    # After each acceptance, not after each batch of them: where batches end differs from member to member.
    plan = state.plan
    if plan is None or any(state.accepted.get(member) != plan.epoch for member in state.needed):
        return state
    return replace(state, agreed=plan.epoch)


def _read_taken(state: FollowerState, ack: Taken) -> FollowerState:
    key = (ack.topic, ack.partition)
    token = state.tokens.get(key)
    if token is None or token.mark is not Mark.RELEASED or ack.hop < token.hop:
        return state
    return _with_token(state, key, replace(token, mark=Mark.GONE, release=None))


def _read_release(state: FollowerState, ack: Release, now: Instant) -> Step:
    key = (ack.topic, ack.partition)
    token = state.tokens.get(key, _ABSENT)
    known_hop = token.release.hop if token.mark is Mark.CHECK and token.release else token.hop
    if token.mark is not Mark.CHECK and ack.hop <= token.hop:
        # It was taken, here, and its old owner does not know yet.
        return state, (_taken(state, ack, now),)
    if token.mark not in _MAY_TAKE or ack.hop <= known_hop:
        return state, ()
    # A later hop than one's own also says that the own release was taken.
    return _with_token(state, key, Token(mark=Mark.CHECK, hop=token.hop, release=ack)), ()


def _with_token(state: FollowerState, key: PartitionKey, token: Token) -> FollowerState:
    return replace(state, tokens={**state.tokens, key: token})


def _taken(state: FollowerState, release: Release, now: Instant) -> Write:
    taken = Taken(
        cluster=release.cluster,
        group=state.settings.group,
        generation=state.generation,
        epoch=release.epoch,
        member=state.member,
        at_ms=now.wall_ms,
        topic=release.topic,
        partition=release.partition,
        hop=release.hop,
    )
    return Write(ack=taken)
