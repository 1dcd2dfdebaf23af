"""What the acks topic and the commits of a group say, afterwards, of the hand-overs that it has made."""

from collections.abc import Iterator, Sequence

from assignor.clients.control import named_in_moves
from assignor.protocol.acks import AnyAck, Applied, Follows, Refused, Release, Taken, Void
from assignor.protocol.marks import HandOverMark, MarkKind
from tests.conformance.topics import timed_acks
from tests.conformance.trial import BrokenRuleError, Trial
from tests.support.brokers.commits import Commit, commits_of


def made_whole(trial: Trial) -> None:
    """In the order of the acks topic, of all plans that were published."""
    newest: dict[str, AnyAck] = {}
    begun: set[int] = set()
    for ack in trial.said():
        if isinstance(ack, Follows | Refused | Void):
            newest[ack.member] = ack
        if not isinstance(ack, Release) or ack.epoch in begun:
            continue
        begun.add(ack.epoch)
        for member in named_in_moves(trial.group.plan_of(ack.epoch)):
            heard = newest.get(member)
            if not isinstance(heard, Follows) or heard.epoch != ack.epoch:
                raise BrokenRuleError(f"{ack.member} released {ack.partition} before {member} had accepted")


def takes_what_was_released(trial: Trial) -> None:
    releases = dict[tuple[int, int, int], Release]()
    for ack in trial.said():
        if isinstance(ack, Release):
            releases.setdefault((ack.generation, ack.partition, ack.hop), ack)
        elif isinstance(ack, Taken):
            release = releases.get((ack.generation, ack.partition, ack.hop))
            if release is None or release.to != ack.member or release.epoch != ack.epoch:
                raise BrokenRuleError(f"{ack.member} took what nobody had released to it: {ack}")
    if not releases:
        raise BrokenRuleError("nothing was released")
    hops = dict[tuple[int, int], int]()
    for generation, partition, hop in releases:
        if hop != hops.get((generation, partition), 0) + 1:
            raise BrokenRuleError(
                f"hop {hop} of partition {partition} follows {hops.get((generation, partition), 0)}"
            )
        hops[generation, partition] = hop


def commits_releases(trial: Trial) -> None:
    """Before a release stands its commit with the mark, and between it and its `taken` the commit of the new owner.

    By the clock of the broker and those of the followers.
    """
    commits = commits_of(trial.group.bootstrap, trial.group.group)
    released = dict[tuple[int, int, int], tuple[int, Release]]()
    for at_ms, ack in timed_acks(trial.group.bootstrap, trial.group.acks):
        if ack in trial.forged:
            continue
        if isinstance(ack, Release) and (key := (ack.generation, ack.partition, ack.hop)) not in released:
            released[key] = at_ms, ack
            if not any(one.at_ms <= at_ms for one in _of(commits, ack, "release")):
                raise BrokenRuleError(f"{ack.member} had not committed it with its mark before: {ack}")
        elif isinstance(ack, Taken) and (key := (ack.generation, ack.partition, ack.hop)) in released:
            since_ms, release = released[key]
            if not any(since_ms <= one.at_ms <= at_ms for one in _of(commits, release, "taken")):
                raise BrokenRuleError(
                    f"{ack.member} took partition {ack.partition} without a commit of its own"
                )


def _of(commits: Sequence[Commit], release: Release, kind: MarkKind) -> Iterator[Commit]:
    """Those of its partition and offset, with its mark of that kind."""
    mark = HandOverMark(kind=kind, generation=release.generation, epoch=release.epoch, hop=release.hop)
    place = (release.partition, release.offset, mark)
    return (one for one in commits if (one.partition, one.offset, one.mark) == place)


def goes_on_there(trial: Trial) -> None:
    ids = {line["who"]: line["member"] for line in trial.group.lines() if line["what"] == "joined"}
    seen = {(ids.get(line["who"]), line["place"], line["offset"]) for line in _records(trial)}
    processed = {(place, offset) for _, place, offset in seen}
    taken = list(_taken(trial.said()))
    # Who gets a partition back before anybody has processed a record of it goes on at the offset that it had released.
    given_back = {(one.to, one.partition, one.offset) for one in taken}
    for release in taken:
        if release.offset and (release.partition, release.offset - 1) not in processed:
            raise BrokenRuleError(f"released behind what was processed: {release}")
        place = (release.member, release.partition, release.offset)
        if place in seen - given_back:
            raise BrokenRuleError(f"{release.member} processed what it had released: {release}")


def _records(trial: Trial) -> Iterator[dict[str, object]]:
    return (line for line in trial.group.lines() if line["what"] == "record")


def _taken(acks: list[AnyAck]) -> Iterator[Release]:
    taken = {(ack.generation, ack.partition, ack.hop) for ack in acks if isinstance(ack, Taken)}
    return (
        ack for ack in acks if isinstance(ack, Release) and (ack.generation, ack.partition, ack.hop) in taken
    )


def applied_in_the_end(trial: Trial) -> None:
    """Behind everything else that a member says of a plan."""
    done = set[tuple[str, int, int]]()
    for ack in trial.said():
        place = (ack.member, ack.generation, ack.epoch)
        if isinstance(ack, Applied):
            done.add(place)
        elif isinstance(ack, Release | Taken) and place in done:
            # A release that was taken already is answered again; a later plan's is another epoch's.
            raise BrokenRuleError(f"{ack.member} had applied plan {ack.epoch} before: {ack}")


def gives_everything_up(trial: Trial) -> None:
    """By the lines of each process: an eager rebalance leaves nobody anything."""
    held: dict[tuple[str, int], int] = {}
    for line in trial.group.lines():
        who, places = line["who"], line.get("places", [])
        if line["what"] in ("revoked", "lost"):
            for place in places:
                held.pop((who, place), None)
        elif line["what"] == "gained":
            kept = [
                place for (name, place), since in held.items() if name == who and since != line["generation"]
            ]
            if kept:
                raise BrokenRuleError(
                    f"{who} is in generation {line['generation']}, and has never given up {kept} of an earlier one"
                )
            held |= {(who, place): line["generation"] for place in places}
