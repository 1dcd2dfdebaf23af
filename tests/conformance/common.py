"""Rules that hold for whoever follows plans, within a generation or by an assignor."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from assignor.protocol.control import ControlRecord
from tests.conformance.group import SESSION_S
from tests.conformance.trial import MEMBERS, BrokenRuleError, Rule, Trial
from tests.support.broker import admin_client, create_topics
from tests.support.follow_plans import key_of
from tests.support.follow_trouble import goes_on
from tests.support.waiting import wait_until

CONTROL = "records.md, the control topic"
_TRIES = 3


def stays(
    change: Callable[[ControlRecord], ControlRecord], *, refused: bool = False
) -> Callable[[Trial], None]:
    """A check that a plan which fits, but for this change, moves nothing."""

    def check(trial: Trial) -> None:
        trial.ignored(change(trial.draft()), refused=refused)

    return check


def _expired(record: ControlRecord) -> ControlRecord:
    now_ms = round(time.time() * 1000)
    return replace(record, created_at_ms=now_ms - 120_000, valid_until_ms=now_ms - 60_000)


def _damaged(trial: Trial) -> None:
    record = trial.draft()
    for topic in (trial.group.control, trial.group.acks):
        trial.group.put_raw(
            topic, key_of(record), b'{"schema":1,"v":1,"kind":"accepted","cluster":', record.epoch
        )
        trial.group.put_raw(topic, b"\xff\xfe", b"\x00", record.epoch)
    trial.apply()


def _withdrawn(trial: Trial) -> None:
    record, before, so_far = trial.draft(), trial.held(), len(trial.group.all_acks())
    trial.group.withdraw(record)
    trial.group.put(record)
    trial.not_followed(record.epoch, before, so_far)
    trial.apply()


def _killed(trial: Trial) -> None:
    record = trial.draft()
    generation, ids, _ = trial.group.base(len(trial.group.alive()))
    trial.group.put(record)
    wait_until(lambda: trial.acks(record.epoch), what=f"the first acknowledgement of plan {record.epoch}")
    trial.group.killed(min(ids))
    trial.start()
    trial.group.base(MEMBERS, after=generation)
    trial.apply()


def _slept(trial: Trial) -> None:
    generation, ids, _ = trial.group.base(len(trial.group.alive()))
    sleeper = min(ids)
    trial.group.put(trial.draft())
    trial.group.send(sleeper, signal.SIGSTOP)
    trial.group.base(MEMBERS - 1, after=generation)
    trial.group.send(sleeper, signal.SIGCONT)
    generation, _, _ = trial.group.base(MEMBERS, after=generation + 1)
    trial.apply()


def _topics_away(trial: Trial) -> None:
    with _without_topics(trial):
        goes_on(trial.group)
    _apply_in_the_end(trial)


def _topics_missing_at_the_start(trial: Trial) -> None:
    generation, ids, _ = trial.group.base(len(trial.group.alive()))
    with _without_topics(trial):
        trial.group.killed(min(ids))
        trial.start()
        trial.group.base(MEMBERS, after=generation)
        goes_on(trial.group)
    _apply_in_the_end(trial)


@contextlib.contextmanager
def _without_topics(trial: Trial) -> Iterator[None]:
    """Both of lagwise's topics are deleted, and made again behind the block."""
    group = trial.group
    admin = admin_client(group.bootstrap)
    for future in admin.delete_topics([group.control, group.acks]).values():
        future.result()
    yield
    create_topics(group.bootstrap, {group.control: 1, group.acks: 1})


def _apply_in_the_end(trial: Trial) -> None:
    """A rebalance on the way back takes a plan its generation."""
    for attempt in range(_TRIES):
        try:
            trial.apply()
        except BrokenRuleError:
            if attempt == _TRIES - 1:
                raise
        else:
            return


def _speaks(trial: Trial) -> None:
    if trial.group.malformed:
        raise BrokenRuleError(f"{len(trial.group.malformed)} lines of no known form")
    for one, other in pairwise(trial.group.alive()):
        _, ids, _ = trial.group.base(len(trial.group.alive()))
        if ids[one] == ids[other]:
            raise BrokenRuleError(f"{one} and {other} print the same member id")


JOINS = Rule(
    is_basis=True,
    number="conformance.md, lines",
    sentence="Every process joins the group and prints what becomes of it.",
    check=_speaks,
)
READING = (
    Rule(number=f"{CONTROL}, 3", sentence="Follow nothing past valid_until.", check=stays(_expired)),
    Rule(
        number=f"{CONTROL}, 3",
        sentence="Follow no dry_run.",
        check=stays(lambda record: replace(record, dry_run=True)),
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="A record whose epoch is not larger changes nothing.",
        check=stays(lambda record: replace(record, epoch=1)),
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="A plan that comes after its withdrawal, with an epoch that is not larger, changes nothing.",
        check=_withdrawn,
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="Records of another group are not yours.",
        check=stays(lambda record: replace(record, group=f"{record.group}-2")),
    ),
    Rule(
        number=f"{CONTROL}, 2",
        sentence="Records of another cluster are not yours.",
        check=stays(lambda record: replace(record, cluster="elsewhere")),
    ),
    Rule(
        number="records.md",
        sentence="Ignore a damaged record; it is never a reason to stop.",
        check=_damaged,
    ),
)
HARM = (
    Rule(
        number="following.md, how it works",
        sentence="A member that is killed in the midst of a plan: the others go on, and follow the next one.",
        check=_killed,
        is_slow=True,
    ),
    Rule(
        number="following.md, rule 5",
        sentence=f"A member that slept beyond its session ({SESSION_S:.0f} s) is stopped, and joins again.",
        check=_slept,
        is_slow=True,
    ),
    Rule(
        number="following.md, when lagwise's topics fail",
        sentence="With both topics away a follower is a plain consumer; it follows again when they are back.",
        check=_topics_away,
    ),
    Rule(
        number="following.md, when lagwise's topics fail",
        sentence="A member that starts before the topics are there consumes, and follows once they are.",
        check=_topics_missing_at_the_start,
        is_slow=True,
    ),
)
