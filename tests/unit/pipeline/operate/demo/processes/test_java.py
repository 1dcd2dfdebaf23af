"""The group in Java: what is missing is one line, and its jar is made when it is older than a source."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import MissingDependencyError
from pipeline.operate.demo.processes import java
from pipeline.operate.demo.scenario import JAVA


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Sequence[str]]:
    """Commands that were to make a jar; the tree is one of the test."""
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        commands.append(command)
        (tmp_path / "made.jar").touch()
        return subprocess.CompletedProcess(command, 0, "", "")

    (tmp_path / "build.py").touch()
    (tmp_path / "A.java").touch()
    monkeypatch.setattr(java, "_BUILD", tmp_path / "build.py")
    monkeypatch.setattr(java, "_JAR", tmp_path / "made.jar")
    monkeypatch.setattr(java, "find_tool", Path)
    monkeypatch.setattr(java.subprocess, "run", run)
    return commands


def test_jar_is_made_once_and_again_when_a_source_is_newer(made: list[Sequence[str]], tmp_path: Path) -> None:
    java.make_jar()
    jar_s = (tmp_path / "made.jar").stat().st_mtime
    os.utime(tmp_path / "build.py", (jar_s - 2, jar_s - 2))
    os.utime(tmp_path / "A.java", (jar_s - 2, jar_s - 2))
    java.make_jar()
    assert len(made) == 1

    os.utime(tmp_path / "A.java", (jar_s + 2, jar_s + 2))
    java.make_jar()

    assert len(made) == 2


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
