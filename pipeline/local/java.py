"""The Java that runs Spark and the embedded broker, or one sentence about how to install it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pipeline.errors import MissingDependencyError

OLDEST = 17
"""Spark 4.0 and Kafka 4 are compiled for Java 17."""
NEWEST = 23
"""Java 24 removed the security manager, which Spark's Hadoop client still calls."""

OS_RELEASE = Path("/etc/os-release")

_TIMEOUT_S = 30.0
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_INSTALL_LINES = {
    "debian": "sudo apt-get install openjdk-17-jre-headless",
    "ubuntu": "sudo apt-get install openjdk-17-jre-headless",
    "fedora": "sudo dnf install java-21-openjdk-headless",
    "rhel": "sudo dnf install java-17-openjdk-headless",
    "suse": "sudo zypper install java-17-openjdk-headless",
    "arch": "sudo pacman -S jre17-openjdk-headless",
    "alpine": "sudo apk add openjdk17-jre-headless",
}
_ELSEWHERE = "see https://adoptium.net/temurin/releases/?version=17"


def find_java() -> Path:
    """The `java` program that Spark chooses: from JAVA_HOME if that is set, else the first on PATH.

    Raises:
        MissingDependencyError: There is none, or its version is unsuitable; the message says how to install one.
    """
    program, where = candidate()
    version = _major_version(program) if program else None
    if program is None or version is None:
        raise MissingDependencyError(
            f"{where} has no working Java, and lagwise needs 17 or 21: {install_line()}"
        )
    if not OLDEST <= version <= NEWEST:
        raise MissingDependencyError(
            f"{program} is Java {version}, and lagwise needs 17 or 21: {install_line()} (and point JAVA_HOME to it)"
        )
    return program


def find_tool(name: str) -> Path:
    """Another program of the JDK to which `java` belongs.

    Raises:
        MissingDependencyError: As `find_java`, or its Java has no compiler; the message says how to install one.
    """
    java = find_java()
    tool = java.resolve().with_name(name)
    if not tool.exists():
        raise MissingDependencyError(
            f"{java} has no {name}, which builds lagwise's jars: install a JDK 17, on "
            "Debian and Ubuntu with sudo apt-get install openjdk-17-jdk-headless"
        )
    return tool


def candidate() -> tuple[Path | None, str]:
    """The program that `find_java` would run, and where it was found, without running it."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home, "bin", "java"), f"JAVA_HOME={home}"
    found = shutil.which("java")
    return (Path(found) if found else None), "PATH"


def _major_version(program: Path) -> int | None:
    """The major version; None if the program does not run. On macOS, `java` may be a stub that asks for a real one."""
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr)
    return int(match.group(1)) if match else None


def install_line() -> str:
    """The command that installs a suitable Java on this platform."""
    if sys.platform == "darwin":
        return "brew install --cask temurin@17"
    names = _linux_names(OS_RELEASE)
    return next((_INSTALL_LINES[name] for name in names if name in _INSTALL_LINES), _ELSEWHERE)


def _linux_names(os_release: Path) -> tuple[str, ...]:
    """Names of the distribution: first its own, then those that it resembles."""
    if not os_release.is_file():
        return ()
    pairs = (line.partition("=") for line in os_release.read_text(encoding="utf-8").splitlines())
    fields = {key: value.strip("\"'") for key, _, value in pairs}
    return (fields.get("ID", ""), *fields.get("ID_LIKE", "").split())
