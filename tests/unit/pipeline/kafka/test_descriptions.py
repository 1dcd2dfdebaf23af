"""Descriptions come from processes that may die: what is known of each group afterwards."""

import json
import signal
from subprocess import CompletedProcess, TimeoutExpired
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from pipeline import child_python
from pipeline.kafka.descriptions import UNASKED, UNREADABLE, Description, GroupMember, describe_groups

MEMBER = {"member_id": "m", "client_id": "c", "assigned": [["t", 3]]}
TOLD = {"state": "STABLE", "kind": "CLASSIC", "members": [MEMBER]}
DESCRIPTION = Description(
    state="STABLE",
    kind="CLASSIC",
    members=(GroupMember(member_id="m", client_id="c", assigned=frozenset({("t", 3)})),),
)


class Processes:
    """Processes that die at some groups; those that ask about all at once have told nothing by then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *fatal: str) -> None:
        self.fatal = fatal
        self.calls: list[tuple[str, ...]] = []
        self.instead: Exception | int | None = None
        monkeypatch.setattr(child_python, "asked", self)

    def __call__(self, command: list[str], question: str, **_: float) -> CompletedProcess[str]:
        given: dict[str, Any] = json.loads(question)
        groups = given["groups"]
        self.calls.append(tuple(groups))
        if isinstance(self.instead, Exception):
            raise self.instead
        at = next((number for number, group in enumerate(groups) if group in self.fatal), None)
        told = groups if at is None else [] if given["at_once"] else groups[:at]
        begun = [] if given["at_once"] else groups if at is None else groups[: at + 1]
        lines = "".join(
            json.dumps(line) + "\n"
            for group in groups
            for line in ([group, None], [group, TOLD])
            if group in (begun if line[1] is None else told)
        )
        half = "" if at is None else '["half'
        return CompletedProcess(
            command, self.instead or (0 if at is None else -signal.SIGABRT), stdout=lines + half
        )


def described(*groups: str) -> dict[str, Any]:
    found = describe_groups({}, groups, timeout_s=5)
    return {
        name: one.args[0].str() if isinstance(one, KafkaException) else one for name, one in found.items()
    }


def test_one_process_describes_groups_that_end_none(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = Processes(monkeypatch)

    assert described("a", "b") == {"a": DESCRIPTION, "b": DESCRIPTION}
    assert processes.calls == [("a", "b")]


def test_only_the_groups_that_end_a_process_are_without_a_description(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes = Processes(monkeypatch, "b", "d")

    assert described("a", "b", "c", "d") == {
        "a": DESCRIPTION,
        "b": UNREADABLE,
        "c": DESCRIPTION,
        "d": UNREADABLE,
    }
    assert processes.calls == [("a", "b", "c", "d"), ("a", "b", "c", "d"), ("c", "d")]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise MemoryError", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    ],
)
def test_process_that_dies_before_it_asks_about_a_group_is_no_fault_of_the_group(
    monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    run, calls = child_python.asked, list[str]()

    def dying(_command: list[str], question: str, *, timeout_s: float) -> CompletedProcess[str]:
        calls.append(question)
        return run(child_python.command(code), question, timeout_s=timeout_s)

    monkeypatch.setattr(child_python, "asked", dying)

    why = f"the process that asks coordinators about groups died (status {status})"
    assert described("a", "b", "c") == dict.fromkeys("abc", why)
    assert len(calls) == 2


def test_groups_behind_the_one_at_which_a_process_hangs_were_not_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = iter([("", -signal.SIGABRT), ('["a", null]\n["a", %s]\n["b", null]\n', -signal.SIGALRM)])

    def ending(command: list[str], _question: str, **_: float) -> CompletedProcess[str]:
        lines, status = next(ends)
        return CompletedProcess(command, status, stdout=lines.replace("%s", json.dumps(TOLD)))

    monkeypatch.setattr(child_python, "asked", ending)

    assert described("a", "b", "c") == {
        "a": DESCRIPTION,
        "b": "no coordinator has described the group in time",
        "c": UNASKED,
    }


@pytest.mark.parametrize("instead", [TimeoutExpired("x", 1), -signal.SIGALRM])
def test_process_that_hangs_is_no_answer(monkeypatch: pytest.MonkeyPatch, instead: Any) -> None:
    processes = Processes(monkeypatch, "a")
    processes.instead = instead

    found = describe_groups({}, ["a", "b"], timeout_s=5)

    assert [one.args[0].code() for one in found.values() if isinstance(one, KafkaException)] == [
        KafkaError._TIMED_OUT
    ] * 2
    assert len(processes.calls) == 1


def test_no_process_begins_after_the_time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = Processes(monkeypatch)

    assert describe_groups({}, ["a"], timeout_s=0)["a"].args[0].code() == KafkaError._TIMED_OUT  # type: ignore[union-attr]
    assert processes.calls == []


def test_group_that_no_client_can_be_asked_about_takes_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = Processes(monkeypatch)

    assert described("", "a\0b") == {}
    assert processes.calls == []
