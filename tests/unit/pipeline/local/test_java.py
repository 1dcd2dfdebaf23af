"""Finding Java: what is taken, and the one sentence when there is none that fits."""

import os
from pathlib import Path

import pytest

from pipeline.errors import MissingDependencyError
from pipeline.local import java


def install_java(folder: Path, version_line: str, exit_status: int = 0) -> Path:
    """A program that answers `-version` as Java does, on standard error."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{version_line}' >&2\nexit {exit_status}\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def _no_java_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


def test_java_home_wins_over_path_as_it_does_for_spark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_path = install_java(tmp_path / "a", 'openjdk version "17.0.1"')
    at_home = install_java(tmp_path / "b", 'openjdk version "21.0.2"')
    monkeypatch.setenv("PATH", str(on_path.parent), prepend=os.pathsep)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "b"))

    assert java.find_java() == at_home


def test_java_on_path_is_taken_without_java_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_path = install_java(tmp_path, 'java version "23" 2024-09-17')
    monkeypatch.setenv("PATH", str(on_path.parent), prepend=os.pathsep)

    assert java.find_java() == on_path


@pytest.mark.parametrize(
    ("version_line", "major"),
    [
        pytest.param('java version "1.8.0_392"', "8", id="old numbering"),
        pytest.param('openjdk version "16.0.2"', "16", id="one too old"),
        pytest.param('openjdk version "24"', "24", id="too new for Hadoop"),
    ],
)
def test_java_that_does_not_fit_is_named_with_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version_line: str, major: str
) -> None:
    install_java(tmp_path, version_line)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(
        MissingDependencyError, match=rf"is Java {major}, and lagwise needs 17 or 21: .*JAVA_HOME"
    ):
        java.find_java()


def test_java_on_path_that_does_not_fit_stays_there_so_java_home_has_to_name_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_path = install_java(tmp_path, 'openjdk version "25"')
    monkeypatch.setenv("PATH", str(on_path.parent), prepend=os.pathsep)

    with pytest.raises(MissingDependencyError, match=r"is Java 25, .*and point JAVA_HOME to it"):
        java.find_java()


def test_no_java_gives_one_line_with_the_way_to_install_it() -> None:
    with pytest.raises(MissingDependencyError) as caught:
        java.find_java()

    message = str(caught.value)
    assert message.startswith("PATH has no working Java, and lagwise needs 17 or 21: ")
    assert "\n" not in message


def test_a_java_that_only_asks_for_java_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_java(tmp_path, "The operation couldn't be completed.", exit_status=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(MissingDependencyError, match="has no working Java"):
        java.find_java()


@pytest.mark.parametrize(
    ("os_release", "line"),
    [
        pytest.param("ID=debian\n", "apt-get install openjdk-17-jre-headless", id="debian"),
        pytest.param('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install java-17", id="like another"),
        pytest.param("ID=alpine\n", "apk add openjdk17", id="alpine"),
        pytest.param("ID=plan9\n", "https://adoptium.net", id="unknown"),
        pytest.param(None, "https://adoptium.net", id="no such file"),
    ],
)
def test_install_line_is_the_one_of_the_platform(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, os_release: str | None, line: str
) -> None:
    file = tmp_path / "os-release"
    if os_release is not None:
        file.write_text(os_release)
    monkeypatch.setattr(java, "OS_RELEASE", file)
    monkeypatch.setattr("sys.platform", "linux")

    assert line in java.install_line()


def test_install_line_on_macos_is_brew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")

    assert java.install_line().startswith("brew install")


def test_tool_of_a_jdk_stands_beside_its_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    at_home = install_java(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    at_home.with_name("javac").touch()

    assert java.find_tool("javac") == at_home.with_name("javac")


def test_java_without_a_compiler_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at_home = install_java(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(MissingDependencyError, match=rf"^{at_home} has no javac.* install a JDK 17"):
        java.find_tool("javac")
