"""The cache of jar sets, with an Ivy that is played by a small program."""

import sys
import threading
from pathlib import Path

import pytest

from pipeline.errors import MissingDependencyError
from pipeline.local import jars as artifacts

COORDINATES = ("org.example:thing_2.13:1.2.3",)

ANSWERS = "\tfound org.example#thing_2.13;1.2.3 in public\ndownloading https://repo.example/thing_2.13-1.2.3.jar ..."

NOT_FOUND = "\t\t:: org.example#thing_2.13;1.2.3: not found"

NO_NETWORK = f"""{NOT_FOUND}
:::: ERRORS
\tServer access error at url https://repo.example/thing.pom (java.net.ConnectException: Connection refused)"""

JAR_FAILED = "\t\t[FAILED     ] org.example#thing_2.13;1.2.3!thing_2.13.jar:  (0ms)"


class FakeIvy:
    """A `java` that answers as Ivy would, and counts how often it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = folder / "asked"
        self.asked.mkdir()

    def will(self, *, say: str, exit_status: int = 0, jars: tuple[str, ...] = ("b-1.jar", "a-1.jar")) -> None:
        program = self.folder / "bin" / "java"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f"#!{sys.executable} -IS\nimport sys, pathlib, os\n"
            "if '-version' in sys.argv:\n    sys.exit(print('version \"17.0.1\"', file=sys.stderr))\n"
            f"pathlib.Path({str(self.asked)!r}, str(os.getpid())).write_text(' '.join(sys.argv))\n"
            "target = pathlib.Path(sys.argv[sys.argv.index('-retrieve') + 1]).parent\n"
            f"for jar in {jars!r}:\n    (target / jar).write_text('')\n"
            f"print({say!r})\nsys.exit({exit_status})\n"
        )
        program.chmod(0o755)

    @property
    def times_asked(self) -> int:
        return len(list(self.asked.iterdir()))


@pytest.fixture
def ivy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeIvy:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fake = FakeIvy(tmp_path)
    fake.will(say=ANSWERS)
    return fake


def test_the_second_time_comes_from_the_cache(ivy: FakeIvy) -> None:
    first = artifacts.resolve(COORDINATES)
    second = artifacts.resolve(COORDINATES)

    assert [jar.name for jar in first] == ["a-1.jar", "b-1.jar"]
    assert second == first
    assert ivy.times_asked == 1


@pytest.mark.parametrize(
    ("coordinates", "excludes"),
    [
        pytest.param(("org.example:thing_2.13:1.2.4",), (), id="another version"),
        pytest.param(COORDINATES, ("slf4j-api",), id="another exclusion"),
    ],
)
def test_another_question_is_another_set(
    ivy: FakeIvy, coordinates: tuple[str, ...], excludes: tuple[str, ...]
) -> None:
    first = artifacts.resolve(COORDINATES)

    other = artifacts.resolve(coordinates, excludes=excludes)

    assert ivy.times_asked == 2
    assert other[0].parent != first[0].parent


def test_order_of_the_question_does_not_matter(ivy: FakeIvy) -> None:
    two = ("org.example:thing:1", "org.example:other:1")

    assert artifacts.resolve(two, excludes=("x", "y")) == artifacts.resolve(two[::-1], excludes=("y", "x"))
    assert ivy.times_asked == 1


def test_what_broke_off_half_way_is_not_used(ivy: FakeIvy) -> None:
    ivy.will(say=JAR_FAILED, exit_status=1, jars=("half-1.jar",))
    with pytest.raises(MissingDependencyError):
        artifacts.resolve(COORDINATES)
    ivy.will(say=ANSWERS)

    jars = artifacts.resolve(COORDINATES)

    assert [jar.name for jar in jars] == ["a-1.jar", "b-1.jar"]


def test_several_askers_at_once_download_once(ivy: FakeIvy) -> None:
    answers: list[tuple[Path, ...]] = []
    askers = [
        threading.Thread(target=lambda: answers.append(artifacts.resolve(COORDINATES))) for _ in range(4)
    ]

    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()

    assert ivy.times_asked == 1
    assert len(set(answers)) == 1


def test_each_downloaded_jar_is_reported_once_and_the_cache_is_silent(ivy: FakeIvy) -> None:
    lines: list[str] = []
    artifacts.resolve(COORDINATES, report=lines.append)
    artifacts.resolve(COORDINATES, report=lines.append)

    assert ivy.times_asked == 1
    assert lines == [
        "Downloading org.example:thing_2.13:1.2.3; this happens once",
        "thing_2.13-1.2.3.jar",
    ]


@pytest.mark.parametrize(
    ("say", "sentence"),
    [
        pytest.param(
            NOT_FOUND, r"no repository has org\.example#thing_2\.13;1\.2\.3: ", id="no such version"
        ),
        pytest.param(
            NO_NETWORK,
            r"could not download org\.example#thing_2\.13;1\.2\.3: .*Connection refused.*JAVA_TOOL_OPTIONS",
            id="no network",
        ),
        pytest.param(JAR_FAILED, r"could not download .*thing_2\.13\.jar: it broke off", id="jar broke off"),
        pytest.param("Exception in main", r"org\.example:thing_2\.13:1\.2\.3", id="unforeseen"),
    ],
)
def test_a_failure_names_the_artifact(ivy: FakeIvy, say: str, sentence: str) -> None:
    ivy.will(say=say, exit_status=1)

    with pytest.raises(MissingDependencyError, match=sentence):
        artifacts.resolve(COORDINATES)


def test_settings_for_a_mirror_reach_ivy(ivy: FakeIvy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(artifacts.SETTINGS_VARIABLE, "/etc/mirror.xml")

    artifacts.resolve(COORDINATES)

    (command,) = (file.read_text() for file in ivy.asked.iterdir())
    assert "-settings /etc/mirror.xml" in command


@pytest.mark.parametrize(
    ("jar", "names"),
    [
        pytest.param("log4j-1.2-api-2.24.3.jar", ("log4j-1.2-api",), id="number in the name"),
        pytest.param("zstd-jni-1.5.6-9.jar", ("zstd-jni",), id="dash in the version"),
        pytest.param("netty-epoll-4.1.118.Final-linux-x86_64.jar", ("netty-epoll",), id="classifier"),
        pytest.param("spark-sql_2.13-4.0.5.jar", ("spark-sql_2.13",), id="scala suffix"),
        pytest.param("connect-repl", (), id="not a jar"),
    ],
)
def test_artifact_name_is_read_off_the_jar(jar: str, names: tuple[str, ...]) -> None:
    assert artifacts._artifact_names([jar]) == names


def test_what_pyspark_ships_is_not_asked_for_again(ivy: FakeIvy, monkeypatch: pytest.MonkeyPatch) -> None:
    modules: list[str] = []
    monkeypatch.setattr(artifacts, "_fill", lambda _target, module, *_: modules.append(module))

    artifacts.resolve_for_spark(COORDINATES)

    for name in ("hadoop-client-runtime", "scala-library", "slf4j-api", "unitycatalog-client"):
        assert f'<exclude module="{name}"/>' in modules[0]
    assert "kafka-clients" not in modules[0]
    assert ivy.times_asked == 0


def test_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file in its place", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(taken))

    with pytest.raises(
        MissingDependencyError, match=r"taken/lagwise cannot be written: .*; fetch as its owner"
    ):
        artifacts.resolve(COORDINATES)


def test_user_without_a_home_is_told_to_name_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)

    with pytest.raises(MissingDependencyError, match=r"no home folder .* point XDG_CACHE_HOME at a folder"):
        artifacts.cache_home()
