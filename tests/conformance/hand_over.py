"""Rules for followers that move partitions within a generation."""

import signal
import time
from dataclasses import replace
from functools import partial

from assignor.protocol.acks import Follows, Refused, Release, Taken, Void
from assignor.protocol.control import ControlRecord
from tests.conformance import releases
from tests.conformance.common import HARM, JOINS
from tests.conformance.ending import ENDING
from tests.conformance.reading import CONTROL, READING, stays
from tests.conformance.trial import QUIET_S, BrokenRuleError, Rule, Trial
from tests.support.waiting import wait_until

PAGE = "following.md"


def _applies(trial: Trial) -> None:
    generation, _, _ = trial.group.base(len(trial.group.alive()))
    record = trial.apply()
    for ack in trial.acks(record.epoch):
        if ack.generation != generation:
            raise BrokenRuleError(f"{type(ack).__name__} names generation {ack.generation}, not {generation}")
    if trial.group.base(len(trial.group.alive()))[0] != generation:
        raise BrokenRuleError("the group has rebalanced for it")


def _applies_again(trial: Trial) -> None:
    """From where partitions are now, in the same generation."""
    draft, held = trial.draft(), trial.held()
    target = {member: list(one.target[trial.group.topic]) for member, one in draft.members.items()}
    trial.apply(trial.group.draft(draft.base_generation, held, target))


def _awaits_acceptance(trial: Trial) -> None:
    record, before = trial.draft(), trial.held()
    sleeper = trial.group.alive()[0]
    trial.group.interrupt(sleeper, signal.SIGSTOP)
    try:
        trial.group.put(record)
        trial.group.wait_for_acks(Follows, record.epoch, len(before) - 1)
        time.sleep(QUIET_S)
        given = [ack for ack in trial.acks(record.epoch) if isinstance(ack, Release)]
    finally:
        trial.group.interrupt(sleeper, signal.SIGCONT)
    if given:
        raise BrokenRuleError(f"{len(given)} released while one of the members had not accepted")
    trial.applied(record)


def _voids(trial: Trial, *, names_epoch: bool = True) -> None:
    record, before = trial.draft(), trial.held()
    sleeper = trial.group.alive()[0]
    trial.group.interrupt(sleeper, signal.SIGSTOP)
    try:
        trial.group.put(record)
        trial.group.wait_for_acks(Follows, record.epoch, len(before) - 1)
        trial.group.withdraw(record, names_epoch=names_epoch)
        trial.group.wait_for_acks(Void, record.epoch, len(before) - 1, within_s=5.0)
    finally:
        trial.group.interrupt(sleeper, signal.SIGCONT)
    time.sleep(QUIET_S)
    if trial.held() != before:
        raise BrokenRuleError(f"the plan was withdrawn, and {before} became {trial.held()}")
    trial.apply()


def _believes_commits(trial: Trial) -> None:
    """While the plan waits for a sleeper, somebody writes the releases of the others in their names."""
    record, before = trial.draft(), trial.held()
    sleeper = trial.group.alive()[0]
    generation, ids, _ = trial.group.base(len(before))
    trial.group.interrupt(sleeper, signal.SIGSTOP)
    try:
        trial.group.put(record)
        trial.group.wait_for_acks(Follows, record.epoch, len(before) - 1)
        for move in record.moves:
            if move.from_member and move.to_member and ids[sleeper] not in (move.from_member, move.to_member):
                trial.forge(
                    Release(
                        cluster=record.cluster,
                        group=record.group,
                        generation=generation,
                        epoch=record.epoch,
                        member=move.from_member,
                        at_ms=1,
                        to=move.to_member,
                        topic=move.topic,
                        partition=move.partition,
                        hop=1 + max(_hops(trial, generation, move.partition), default=0),
                        offset=0,
                    )
                )
        time.sleep(QUIET_S)
        taken = [ack for ack in trial.acks(record.epoch) if isinstance(ack, Taken)]
    finally:
        trial.group.interrupt(sleeper, signal.SIGCONT)
    if taken:
        raise BrokenRuleError(f"{len(taken)} taken that nobody had released: {taken[0]}")
    trial.applied(record)


def _hops(trial: Trial, generation: int, partition: int) -> list[int]:
    releases = (ack for ack in trial.said() if isinstance(ack, Release))
    return [ack.hop for ack in releases if (ack.generation, ack.partition) == (generation, partition)]


def _refuses_once(trial: Trial) -> None:
    record = _of_strangers(trial.draft())
    trial.group.put(record)
    trial.refused(record.epoch)
    trial.group.put(record)
    trial.apply()
    refusals = [ack.member for ack in trial.acks(record.epoch) if isinstance(ack, Refused)]
    if len(refusals) != len(set(refusals)):
        raise BrokenRuleError(f"refused more than once: {refusals}")


def _refuses_migration(trial: Trial) -> None:
    record = replace(trial.draft(), migration="unknown")
    trial.ignored(record, refused=True)
    for ack in trial.refused(record.epoch):
        if not ack.why.startswith("migration is"):
            raise BrokenRuleError(f"the reason begins otherwise: {ack.why!r}")


def _leaves_for_migration(trial: Trial) -> None:
    members = len(trial.group.alive())
    generation, _, _ = trial.group.base(members)
    trial.apply()
    record = replace(trial.draft(), migration="possible")
    trial.group.put(record)
    trial.refused(record.epoch)
    _, _, base = trial.group.base(members, after=generation)
    wait_until(lambda: trial.held() == base, what="everybody with what Kafka assigned")


def _waits_for_generation(trial: Trial) -> None:
    record = trial.draft()
    later = replace(record, base_generation=record.base_generation + 1000)
    trial.ignored(later)
    if trial.acks(later.epoch):
        raise BrokenRuleError(f"it does not wait: {trial.kinds(later.epoch)}")


def _of_earlier_generation(record: ControlRecord) -> ControlRecord:
    return replace(record, base_generation=record.base_generation - 1)


def _of_strangers(record: ControlRecord) -> ControlRecord:
    members = {f"not-{name}": member for name, member in record.members.items()}
    return replace(record, members=members, moves=())


def _of_other_base(record: ControlRecord) -> ControlRecord:
    """Neither what Kafka assigned nor what anybody reads: the partitions are one another's."""
    ordered = sorted(record.members)
    everything = sorted(n for m in record.members.values() for by in m.base.values() for n in by)
    topic = next(iter(record.members[ordered[0]].base))
    bases = {name: {topic: tuple(everything[rank :: len(ordered)])} for rank, name in enumerate(ordered)}
    taken = {(name, member.base[topic]) for name, member in record.members.items()}
    if any((name, base[topic]) in taken for name, base in bases.items()):
        bases = {name: {topic: tuple(everything) if rank == 0 else ()} for rank, name in enumerate(ordered)}
    return replace(
        record,
        members={name: replace(member, base=bases[name]) for name, member in record.members.items()},
    )


def _of_no_permutation(record: ControlRecord) -> ControlRecord:
    giver = min(record.members)
    topic = next(iter(record.members[giver].target))
    less = {topic: record.members[giver].target[topic][1:]}
    return replace(record, members={**record.members, giver: replace(record.members[giver], target=less)})


RULES = (
    JOINS,
    Rule(
        number=f"{PAGE}, rules 3 to 5",
        sentence="A plan that fits is accepted, handed over and applied, in the generation that there is.",
        check=_applies,
        is_basis=True,
    ),
    Rule(
        number=f"{PAGE}, rule 2",
        sentence="Its base for you is what Kafka assigned, or what you read now.",
        check=_applies_again,
    ),
    *READING,
    Rule(
        number=f"{PAGE}, rule 2",
        sentence="A plan of an earlier generation that is still valid is refused.",
        check=stays(_of_earlier_generation, refused=True),
    ),
    Rule(
        number=f"{PAGE}, rule 2", sentence="A plan for a later generation waits.", check=_waits_for_generation
    ),
    Rule(
        number=f"{PAGE}, rule 2",
        sentence="A plan without your member id is refused, once for each epoch and generation.",
        check=_refuses_once,
    ),
    Rule(
        number=f"{PAGE}, rule 2",
        sentence="A plan with another base than yours is refused.",
        check=stays(_of_other_base, refused=True),
    ),
    Rule(
        number=f"{PAGE}, rule 2",
        sentence="A plan whose target is no permutation of its base is refused.",
        check=stays(_of_no_permutation, refused=True),
    ),
    Rule(
        number=f"{PAGE}, rule 1",
        sentence="A plan whose migration is not disabled is refused, with a why that begins so.",
        check=_refuses_migration,
    ),
    Rule(
        number=f"{PAGE}, rule 3",
        sentence="Give nothing away until everybody whom the moves name has accepted; then all of it.",
        check=_awaits_acceptance,
    ),
    Rule(
        number=f"{PAGE}, rule 7",
        sentence="A release that no commit of the old owner bears out moves nothing.",
        check=_believes_commits,
    ),
    Rule(
        number=f"{PAGE}, how it works",
        sentence="A plan that is withdrawn before it has begun moves nothing, and who had accepted it writes void.",
        check=_voids,
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="A withdrawal without an epoch counts.",
        check=partial(_voids, names_epoch=False),
    ),
    Rule(
        number=f"{PAGE}, rule 1",
        sentence="Where migration is possible and something was handed over, leave the group and join again.",
        check=_leaves_for_migration,
        is_slow=True,
    ),
    Rule(
        number=f"{PAGE}, rule 3",
        sentence="On the acks topic no release stands before the acceptances that it needs.",
        check=releases.made_whole,
    ),
    Rule(
        number=f"{PAGE}, rules 5 and 7",
        sentence="Only what was released to a member is taken by it; hops count from 1 in each generation.",
        check=releases.takes_what_was_released,
    ),
    Rule(
        number=f"{PAGE}, rules 4 and 5",
        sentence="The old owner commits the offset of a release with its mark, and the new one commits it again.",
        check=releases.commits_releases,
    ),
    Rule(
        number=f"{PAGE}, rule 4",
        sentence="The offset of a release is behind the last record that the old owner has processed.",
        check=releases.goes_on_there,
    ),
    Rule(
        number="records.md, the acks topic",
        sentence="Applied is written when the whole target is held and all that was given is taken.",
        check=releases.applied_in_the_end,
    ),
    *HARM,
    Rule(
        number=f"{PAGE}, rule 8",
        sentence="Who joins another generation has given up, or lost, all that it read in the one before.",
        check=releases.gives_everything_up,
        is_last=True,
    ),
    *ENDING,
)
