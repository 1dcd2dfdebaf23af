"""Coordinators' descriptions of groups, asked for in child processes.

The leader of a classic group may hand out any bytes as assignments. On some of them librdkafka 2.16 ends its process
(an assertion in rdkafka_admin.c), and on others its Python client fails for all groups of the call. So each question
has a process of its own (`main`), with the question as JSON on stdin and a line of JSON for each group on stdout. One
that asks about groups one by one writes each group's name before it asks, so that no group answers for a process that
dies of another cause.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from pipeline import child_python
from pipeline.errors import ConfigError
from pipeline.kafka.asking import answer, can_be_asked
from pipeline.kafka.client import resolve
from pipeline.kafka.positions import PartitionKey
from pipeline.kafka.tokens import ready

UNREADABLE = "Kafka's client fails on the coordinator's answer about this group"
UNASKED = "there was no time left to ask about this group"
_DIED = "the process that asks coordinators about groups died"
_START_S = 10.0
"""Time that the process needs in addition to the brokers' time, on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member as its coordinator describes it."""

    member_id: str
    client_id: str
    assigned: frozenset[PartitionKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A group as its coordinator describes it."""

    state: str
    """Name in `ConsumerGroupState`."""
    kind: str
    """Name in `ConsumerGroupType`."""
    members: tuple[GroupMember, ...]


Answer: TypeAlias = Description | KafkaException


def describe_groups(
    properties: Mapping[str, str], groups: Collection[str], *, timeout_s: float
) -> dict[str, Answer]:
    """Each group that can be asked about, with its coordinator's description or the error.

    The first process asks about all groups at once. If it dies, the next ones ask one by one: the group at which one
    dies has no description, and the next process goes on behind it. None begins after twice the time-out.

    Args:
        properties: As `client.unresolved` returns them.
        groups: Names of groups.
        timeout_s: Time for the brokers' answers to one process.
    """
    ends_at_s = time.monotonic() + 2 * timeout_s
    found: dict[str, Answer] = {}
    asked, is_first = [group for group in groups if can_be_asked(group)], True
    silent: list[str] = []
    while asked and time.monotonic() < ends_at_s:
        question = {
            "properties": dict(properties),
            "groups": asked,
            "timeout_s": timeout_s,
            "at_once": is_first,
        }
        try:
            done = child_python.asked(
                child_python.module_command("pipeline.kafka.descriptions"),
                json.dumps(question),
                timeout_s=2 * (timeout_s + _START_S),
            )
        except subprocess.TimeoutExpired:
            silent = asked
            break
        except OSError as failure:
            return found | _failed(asked, KafkaError._FAIL, f"no process can be started: {failure}")
        answers, begun = _answers(done.stdout)
        found |= answers
        asked = [group for group in asked if group not in found]
        if done.returncode == -signal.SIGALRM:
            silent = asked if is_first else begun
            break
        if not is_first and not begun:
            # It died before it asked, or between two groups: killed for memory, or by an import that fails.
            return found | _failed(asked, KafkaError._FAIL, f"{_DIED} (status {done.returncode})")
        found |= _failed(begun, KafkaError._FAIL, UNREADABLE)
        asked = [group for group in asked if group not in begun]
        is_first = False
    found |= _failed(asked, KafkaError._TIMED_OUT, UNASKED)
    return found | _failed(silent, KafkaError._TIMED_OUT, "no coordinator has described the group in time")


def _answers(lines: str) -> tuple[dict[str, Answer], list[str]]:
    """The answers in a process's output, and the group at which it ended, if it names one."""
    found: dict[str, Answer] = {}
    begun: list[str] = []
    for line in lines.splitlines():
        # A process that dies may leave half a line.
        with suppress(ValueError):
            group, told = json.loads(line)
            if told is None:
                begun = [group]
            else:
                found[group] = _read(told)
    return found, [group for group in begun if group not in found]


def _failed(groups: Collection[str], code: int, why: str) -> dict[str, Answer]:
    return {group: KafkaException(KafkaError(code, why)) for group in groups}


def _read(told: Mapping[str, Any]) -> Answer:
    if "code" in told:
        return KafkaException(KafkaError(told["code"], told["why"]))
    members = (
        GroupMember(**{**one, "assigned": frozenset((topic, number) for topic, number in one["assigned"])})
        for one in told["members"]
    )
    return Description(state=told["state"], kind=told["kind"], members=tuple(members))


def _written(future: "Future[ConsumerGroupDescription]", timeout_s: float) -> dict[str, Any]:
    try:
        found = answer(future, timeout_s)
    except KafkaException as failure:
        return _error(failure)
    members = [
        asdict(GroupMember(member_id=one.member_id, client_id=one.client_id, assigned=frozenset()))
        | {"assigned": [(place.topic, place.partition) for place in one.assignment.topic_partitions]}
        for one in found.members
    ]
    return {
        "state": found.state.name,
        "kind": found.type.name if found.type else "UNKNOWN",
        "members": members,
    }


def _error(failure: KafkaException) -> dict[str, Any]:
    return {"code": failure.args[0].code(), "why": failure.args[0].str()}


def _told(
    properties: Mapping[str, str], groups: list[str], *, timeout_s: float, at_once: bool
) -> Iterator[tuple[str, dict[str, Any] | None]]:
    try:
        admin = AdminClient(ready(resolve(properties)))
    except KafkaException as failure:
        yield from ((group, _error(failure)) for group in groups)
        return
    except ConfigError as failure:
        yield from ((group, {"code": KafkaError._INVALID_ARG, "why": str(failure)}) for group in groups)
        return
    for call in [groups] if at_once else [[group] for group in groups]:
        if not at_once:
            yield call[0], None
        for group, future in admin.describe_consumer_groups(call, request_timeout=timeout_s).items():
            yield group, _written(future, timeout_s)


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    # The default action of SIGALRM ends the process even if a call into librdkafka never returns.
    signal.setitimer(signal.ITIMER_REAL, question["timeout_s"] + _START_S)
    for told in _told(**question):
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
