"""A process that describes a group, again and again: librdkafka aborts its process when a coordinator goes away meanwhile.

It prints a line of JSON for each line of its standard input, null where nobody answers: python -m tests.support.brokers.describing SERVERS GROUP.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import MemberAssignment

from tests.support.brokers.broker import admin_client

_ROOT = Path(__file__).parents[3]
_WITHIN_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """A member, with partitions of the group's one topic."""

    client_id: str
    member_id: str
    has: tuple[int, ...]
    wanted: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A group, as its coordinator describes it."""

    state: str
    coordinator: int
    members: tuple[DescribedMember, ...]


class Describing:
    """The process; a context manager that starts it again when it has died."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._command = [sys.executable, "-m", "tests.support.brokers.describing", bootstrap, group]
        self._process = self._begun()

    def __enter__(self) -> "Describing":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self) -> Described | None:
        """The group; None where nobody answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.kill()
            self._process.wait()
            self._process = self._begun()
            return None
        found = json.loads(line)
        if found is None:
            return None
        members = tuple(
            DescribedMember(client_id=client, member_id=member, has=tuple(has), wanted=tuple(wanted))
            for client, member, has, wanted in found["members"]
        )
        return Described(state=found["state"], coordinator=found["coordinator"], members=members)

    def _begun(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT
        )


def main(lines: Iterable[str], bootstrap: str, group: str) -> None:
    """Answer each line."""
    for _ in lines:
        sys.stdout.write(json.dumps(_described(bootstrap, group)) + "\n")
        sys.stdout.flush()


def _described(bootstrap: str, group: str) -> dict[str, object] | None:
    # Asked again, a client goes to the old coordinator for ever once that is a broker again.
    admin = admin_client(bootstrap)
    try:
        found = admin.describe_consumer_groups([group], request_timeout=_WITHIN_S)[group].result(
            2 * _WITHIN_S
        )
    except KafkaException:
        return None
    return {
        "state": found.state.name,
        "coordinator": found.coordinator.id if found.coordinator is not None else -1,
        "members": [
            (one.client_id, one.member_id, _numbers(one.assignment), _numbers(one.target_assignment))
            for one in found.members
        ],
    }


def _numbers(assigned: MemberAssignment | None) -> list[int]:
    return sorted(place.partition for place in assigned.topic_partitions) if assigned else []


if __name__ == "__main__":
    main(sys.stdin, *sys.argv[1:])
