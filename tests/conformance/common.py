"""Harm that whoever follows plans survives, within a generation or by an assignor."""

import contextlib
import signal
from collections.abc import Iterator
from itertools import pairwise

from tests.conformance.group import SESSION_S
from tests.conformance.trial import MEMBERS, BrokenRuleError, Rule, Trial
from tests.support.brokers.broker import admin_client, create_topics
from tests.support.followers.follow_trouble import goes_on
from tests.support.waiting import wait_until

_TRIES = 3


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
    try:
        trial.group.base(MEMBERS - 1, after=generation)
    finally:
        # A rule that fails leaves no sleeper to the next one.
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
    try:
        yield
    finally:
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
