"""A trial: rules that are judged one after the other, on one group of real processes."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from confluent_kafka import KafkaException

from assignor.protocol import acks as ack_records
from assignor.protocol.acks import AnyAck, Applied, Follows, Refused, Release, Taken
from assignor.protocol.control import ControlRecord
from tests.conformance.group import Group
from tests.support.waiting import wait_until

MEMBERS = 3
FORMED_WITHIN_S = 40.0
APPLIED_WITHIN_S = 20.0
"""A plan that everybody can follow is applied by then."""
HELD_WITHIN_S = 10.0
"""Members that are done with a plan, applied or refused, have then what they are to have."""
QUIET_S = 1.0
"""What has not begun to be followed by then is not followed."""
MOST_REPLACED = 2 * MEMBERS
"""Members that may end by themselves; of a group that has lost more, only what can be seen in the end is judged."""

Held: TypeAlias = dict[str, list[int]]
"""Partitions by member id."""
Outcome: TypeAlias = Literal["pass", "fail", "not judged"]


class BrokenRuleError(AssertionError):
    """A follower did what the rule forbids, or did not what it demands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A sentence of the docs, and what finds out whether it is kept."""

    number: str
    """Where it stands: page, and number or heading."""
    sentence: str
    check: Callable[["Trial"], None]
    is_slow: bool = False
    """Takes longer than a session."""
    is_basis: bool = False
    """Where it is broken, of the others only those are judged that are left for the end."""
    is_last: bool = False
    """Looks back on all that was done, whatever came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a rule."""

    rule: Rule
    outcome: Outcome
    why: str = ""


class Trial:
    """The group under trial, and what the stand-in publisher does with it.

    Attributes:
        group: Its processes.
        forged: Acknowledgements that the judge has written in the name of a member.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.forged: list[AnyAck] = []
        self._started, self._replaced = 0, 0
        self._is_formed, self._is_sound = False, True

    def start(self, members: int = 1) -> None:
        """So many more processes."""
        for _ in range(members):
            self._started += 1
            self.group.start(f"m{self._started}")

    def judge(self, rules: Sequence[Rule]) -> Iterator[Verdict]:
        """A verdict for each rule, in their order; none of a group that never forms."""
        for rule in rules:
            if self._is_sound or (self._is_formed and rule.is_last):
                yield self._verdict(rule)
            else:
                yield Verdict(rule=rule, outcome="not judged")

    def _verdict(self, rule: Rule) -> Verdict:
        is_ready = False
        try:
            self._make_ready(rule)
            is_ready = True
            rule.check(self)
            self.group.fail_if_dead()
        except (AssertionError, OSError) as error:
            self._is_sound = self._is_sound and is_ready and not rule.is_basis
            return Verdict(rule=rule, outcome="fail" if is_ready else "not judged", why=self._why(error))
        except KafkaException as error:
            why = f"the judge had no answer of the broker: {error}"
            return Verdict(rule=rule, outcome="not judged", why=why)
        return Verdict(rule=rule, outcome="pass")

    def _make_ready(self, rule: Rule) -> None:
        """A whole group: what one rule has done to it, or has found out, does not hold up the next one."""
        if not self._is_formed:
            self._form()
            self._is_formed = True
            return
        self.group.bury()
        lost = MEMBERS - len(self.group.alive())
        if rule.is_last or lost <= 0:
            return
        self._replaced += lost
        if self._replaced > MOST_REPLACED:
            raise BrokenRuleError(f"{self._replaced} members have ended, more than are replaced")
        self.start(lost)
        self.group.base(MEMBERS)

    def _form(self) -> None:
        self.start(MEMBERS)

        def is_over() -> bool:
            now = self.group.current()
            return bool(self.group.crashed()) or (now is not None and len(now[1]) == MEMBERS)

        wait_until(
            is_over, what=f"{MEMBERS} members in one generation, all of it printed", within_s=FORMED_WITHIN_S
        )
        if self.group.crashed():
            raise BrokenRuleError("the group does not form")

    def _why(self, error: Exception) -> str:
        words = "".join(f"; {who} has ended: {self.group.last_words(who)}" for who in self.group.dead())
        malformed = f"; no such line: {self.group.malformed[0]!r}" if self.group.malformed else ""
        return f"{error}{words}{malformed}"

    def held(self) -> Held:
        """Partitions that each member reads now, by member id."""
        _, ids, _ = self.group.base(len(self.group.alive()))
        held: Held = {member: [] for member in ids.values()}
        for place, owners in self.group.owners().items():
            for who in owners & set(ids):
                held[ids[who]].append(place)
        return held

    def draft(self) -> ControlRecord:
        """A plan that fits, and moves every partition from where it is now."""
        generation, _, base = self.group.base(len(self.group.alive()))
        held = self.held()
        target = next(one for one in rotations(base) if one != held)
        return self.group.draft(generation, base, target)

    def apply(self, record: ControlRecord | None = None) -> ControlRecord:
        """Publish a plan that fits, and return when all have applied it.

        Raises:
            BrokenRuleError: They do not.
        """
        record = record or self.draft()
        self.group.put(record)
        self.applied(record)
        return record

    def applied(self, record: ControlRecord) -> None:
        """Return when all have said that they have applied the plan, and read what it gives them.

        Raises:
            BrokenRuleError: They do not.
        """
        target = {member: list(placed(one.target)) for member, one in record.members.items()}
        try:
            self.group.wait_for_acks(Applied, record.epoch, len(target), within_s=APPLIED_WITHIN_S)
            wait_until(lambda: self.held() == target, what="the target", within_s=HELD_WITHIN_S)
        except AssertionError as error:
            raise BrokenRuleError(
                f"plan {record.epoch} was not applied: {error}; acknowledged: {self.kinds(record.epoch)}"
            ) from None

    def ignored(self, record: ControlRecord, *, refused: bool = False) -> None:
        """See that a plan that was just published is not followed, and the next one that fits is.

        Args:
            record: It.
            refused: Whether every member has to write `refused`.

        Raises:
            BrokenRuleError: It is followed, or not refused, or the next one is not applied.
        """
        before, so_far = self.held(), len(self.group.all_acks())
        self.group.put(record)
        self.not_followed(record.epoch, before, so_far)
        if refused:
            self.refused(record.epoch)
        self.apply()

    def refused(self, epoch: int) -> list[Refused]:
        """The refusals of all members.

        Raises:
            BrokenRuleError: There are fewer.
        """
        try:
            self.group.wait_for_acks(Refused, epoch, len(self.group.alive()), within_s=APPLIED_WITHIN_S)
        except AssertionError as error:
            raise BrokenRuleError(f"{error}; acknowledged: {self.kinds(epoch)}") from None
        return [ack for ack in self.acks(epoch) if isinstance(ack, Refused)]

    def not_followed(self, epoch: int, before: Held, so_far: int) -> None:
        """Return when the time for it is over in which nothing may be done for that epoch.

        Args:
            epoch: Of a plan that was published.
            before: Who read what before that.
            so_far: Number of acknowledgements before that.

        Raises:
            BrokenRuleError: Something was.
        """
        deadline = time.monotonic() + QUIET_S
        while time.monotonic() < deadline:
            time.sleep(0.1)
            new = [ack for ack in self.group.all_acks()[so_far:] if ack.epoch == epoch]
            if any(isinstance(ack, Follows | Applied | Release | Taken) for ack in new):
                raise BrokenRuleError(f"plan {epoch} was followed: {self.kinds(epoch)}")
        try:
            # The refusal of a leader takes a rebalance, in whose midst members have given up what they get again.
            wait_until(
                lambda: self.held() == before, what="partitions where they were", within_s=HELD_WITHIN_S
            )
        except AssertionError:
            raise BrokenRuleError(f"plan {epoch} was followed: {before} became {self.held()}") from None

    def forge(self, ack: AnyAck) -> None:
        """Write it, as anybody could who may write to the topic."""
        self.forged.append(ack)
        self.group.put_raw(self.group.acks, ack_records.encode_key(ack), ack_records.encode(ack), ack.epoch)

    def said(self) -> list[AnyAck]:
        """What members have acknowledged, in the order of the topic."""
        return [ack for ack in self.group.all_acks() if ack not in self.forged]

    def acks(self, epoch: int) -> list[AnyAck]:
        """Acknowledgements of a plan, in the order of their topic."""
        return [ack for ack in self.said() if ack.epoch == epoch]

    def kinds(self, epoch: int) -> str:
        """What was acknowledged of a plan, for people."""
        kinds = [type(ack).__name__.lower() for ack in self.acks(epoch)]
        return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))) or "nothing"


def judge(bootstrap: str, folder: Path, command: Sequence[str], rules: Sequence[Rule]) -> Iterator[Verdict]:
    """Verdicts on a command, as they come; what its processes print goes to the folder."""
    with Group(bootstrap, f"conformance-{folder.name}", folder, command) as group:
        yield from Trial(group).judge(rules)


def rotations(base: Mapping[str, list[int]]) -> list[Held]:
    """Targets in which every partition has another owner: each member gets those of the next, or of the one behind."""
    names = sorted(base)
    return [
        {name: list(base[names[(rank + by) % len(names)]]) for rank, name in enumerate(names)}
        for by in range(1, len(names))
    ]


def placed(by_topic: Mapping[str, Sequence[int]]) -> Iterator[int]:
    """Partition numbers; a group on trial reads one topic."""
    for numbers in by_topic.values():
        yield from numbers
