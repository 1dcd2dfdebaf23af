"""Jars of the demo: what is missing is one line, and a jar is made when it is older than a source."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import MissingDependencyError
from pipeline.operate.demo.processes import java
from pipeline.operate.demo.scenario import JAVA


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Sequence[str]]:
    """Commands that were to make a jar, each after its class path; the tree is one of the test."""
    commands: list[Sequence[str]] = []

    def run(
        command: Sequence[str], *, env: Mapping[str, str], **_: Any
    ) -> "subprocess.CompletedProcess[str]":
        commands.append([env.get("KAFKA_BROKER", ""), *command[1:]])
        (jar,) = (Path(word) for word in command if word.endswith(".jar"))
        jar.touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    (tmp_path / "build.py").touch()
    (tmp_path / "A.java").touch()
    monkeypatch.setattr(java, "_BUILD", tmp_path / "build.py")
    monkeypatch.delenv("KAFKA_BROKER", raising=False)
    monkeypatch.setattr(java, "_JAR", tmp_path / "made.jar")
    monkeypatch.setattr(java, "_BROKER_JAR", tmp_path / "broker" / "made.jar")
    monkeypatch.setattr(java, "resolve", lambda _: (Path("kafka.jar"), Path("slf4j.jar")))
    monkeypatch.setattr(java, "find_tool", Path)
    monkeypatch.setattr(java.subprocess, "run", run)
    return commands


@pytest.mark.parametrize("make", [java.make_jar, java.make_broker_jar])
def test_jar_is_made_once_and_again_when_a_source_is_newer(
    make: Callable[[], Path], made: list[Sequence[str]], tmp_path: Path
) -> None:
    jar_s = make().stat().st_mtime
    os.utime(tmp_path / "build.py", (jar_s - 2, jar_s - 2))
    os.utime(tmp_path / "A.java", (jar_s - 2, jar_s - 2))
    make()
    assert len(made) == 1

    os.utime(tmp_path / "A.java", (jar_s + 2, jar_s + 2))
    make()

    assert len(made) == 2


def test_jar_of_the_broker_is_compiled_against_the_brokers_own_kafka(
    made: list[Sequence[str]], tmp_path: Path
) -> None:
    jar = java.make_broker_jar()

    ((kafka, *command),) = made
    assert kafka == os.pathsep.join(("kafka.jar", "slf4j.jar"))
    assert command[:2] == [str(tmp_path / "build.py"), "--broker-assignor"]
    assert Path(command[2]).name == jar.name
    assert len(command) == 3


def test_jar_that_was_not_finished_is_not_there_for_the_next_demo(
    made: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def half(command: Sequence[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        Path(command[-1]).write_text("half a jar")
        return subprocess.CompletedProcess(command, -15, "", "")

    monkeypatch.setattr(java.subprocess, "run", half)

    with pytest.raises(MissingDependencyError, match=r"made no jar: it gives no reason$"):
        java.make_broker_jar()

    assert made == []
    assert list((tmp_path / "broker").iterdir()) == []


def test_place_of_the_jar_that_cannot_be_written_is_named(made: list[Sequence[str]], tmp_path: Path) -> None:
    (tmp_path / "broker").touch()

    with pytest.raises(MissingDependencyError, match=r"broker/made\.jar cannot be written: "):
        java.make_broker_jar()

    assert made == []


def test_installed_package_says_that_the_source_is_missing(
    made: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(java, "_BUILD", tmp_path / "nowhere" / "build.py")

    with pytest.raises(MissingDependencyError, match=r"there is no .*nowhere/build.py: run it in a clone"):
        java.make_jar()

    assert made == []


def test_build_that_fails_gives_its_last_line(
    made: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = subprocess.CompletedProcess((), 1, "", "Downloading\nno route to host\n")
    monkeypatch.setattr(java.subprocess, "run", lambda *_, **__: failed)

    with pytest.raises(MissingDependencyError, match=r"made no jar: no route to host$"):
        java.make_jar()

    assert made == []


def test_members_have_a_small_heap_and_those_that_do_not_follow_the_same_assignor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(java, "find_java", lambda: Path("java"))
    monkeypatch.setattr(java, "resolve", lambda _: (Path("kafka-clients.jar"),))

    command = java.command("b:1", JAVA.groups[0])
    plain = java.command("b:1", replace(JAVA.groups[0], follows=False))

    assert "-Xmx128m" in command
    assert command[-8:-6] == ["invoices", "80,240"]
    assert {"bootstrap.servers=b:1", "group.id=invoicing", "lagwise.cluster=demo"} < {*command}
    assert "partition.assignment.strategy=lagwise.follow.LagwiseAssignor" in command
    assert {*command} - {*plain} == {"lagwise.cluster=demo"}
