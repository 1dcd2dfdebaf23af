"""The jar for consumers in Java: made without the job's set-up, the same from each build, with its coordinates inside."""

import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from pipeline.local.jars import resolve
from tests.support.java.java_apps import SOURCES as APPS
from tests.support.java.java_jar import ROOT, SOURCES, VERSIONS, java_jar

BUILD = ROOT / "deploy/java/build.py"
OLDEST = VERSIONS[0]


def built(folder: Path, *limit: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """What the build says, by an interpreter that has no packages, as where nothing was set up; a limit runs it."""
    return subprocess.run(
        [*limit, sys.executable, "-S", str(BUILD), str(folder / f"lagwise-follow-{version('lagwise')}.jar")],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture(scope="module")
def class_path() -> str:
    java_jar()
    return os.pathsep.join(map(str, resolve((f"org.apache.kafka:kafka-clients:{OLDEST}",))))


@pytest.fixture(scope="module")
def builds(class_path: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What two builds have made, which need a JDK and kafka-clients only, each in a folder of its own."""
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    # A zip tells local time.
    done = [
        built(folder, KAFKA_CLIENTS=class_path, TZ=zone)
        for folder, zone in ((one, "UTC"), (two, "Asia/Tokyo"))
    ]
    assert [each.returncode for each in done] == [0, 0], done
    return one, two


@pytest.fixture(scope="module")
def jar(builds: tuple[Path, Path]) -> Path:
    (file,) = builds[0].glob("*.jar")
    return file


def test_two_builds_are_the_same_bytes_and_need_only_a_jdk_and_kafka_clients(
    builds: tuple[Path, Path],
) -> None:
    names = [sorted(file.name for file in folder.iterdir()) for folder in builds]
    assert names[0] == names[1] == [f"lagwise-follow-{version('lagwise')}.{end}" for end in ("jar", "pom")]
    assert all((builds[0] / name).read_bytes() == (builds[1] / name).read_bytes() for name in names[0])


def test_jar_has_its_coordinates_and_its_licence(jar: Path) -> None:
    with zipfile.ZipFile(jar) as inside:
        names = inside.namelist()
        pom = inside.read("META-INF/maven/lagwise/lagwise-follow/pom.xml").decode()
        manifest = inside.read("META-INF/MANIFEST.MF").decode()

    for field in (
        "groupId>lagwise<",
        "artifactId>lagwise-follow<",
        f"version>{version('lagwise')}<",
        "name>Apache-2.0<",
    ):
        assert f"<{field}/" in pom
    assert f"Implementation-Version: {version('lagwise')}\r\n" in manifest
    assert jar.with_suffix(".pom").read_text() == pom
    assert names[0] == "META-INF/MANIFEST.MF"
    assert "META-INF/LICENSE" in names
    assert "lagwise/follow/LagwiseAssignor.class" in names


def test_without_kafka_clients_the_build_says_what_to_do(tmp_path: Path) -> None:
    java_jar()
    # A PATH with a JDK and nothing else.
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("java", "javac"):
        (tools / name).symlink_to(Path("/usr/bin", name).resolve())

    done = built(tmp_path, PATH=str(tools))

    assert done.returncode == 1
    assert "set KAFKA_CLIENTS to a class path" in done.stderr
    assert list(tmp_path.glob("*.jar")) == []


def test_jar_that_cannot_be_written_leaves_the_old_one_and_says_so(tmp_path: Path, class_path: str) -> None:
    jar = tmp_path / f"lagwise-follow-{version('lagwise')}.jar"
    jar.write_text("the old one")

    # Room for each class, and not for all of them; a full disk ends a write like this.
    done = built(tmp_path, "prlimit", "--fsize=65536", KAFKA_CLIENTS=class_path)

    assert done.returncode == 1
    assert done.stderr.startswith(f"{jar} cannot be written: File too large; name another file")
    assert [file.name for file in tmp_path.iterdir()] == [jar.name]
    assert jar.read_text() == "the old one"


def test_jar_whose_folder_is_a_file_says_so(tmp_path: Path, class_path: str) -> None:
    folder = tmp_path / "build"
    folder.write_text("")

    done = built(folder, KAFKA_CLIENTS=class_path)

    assert done.returncode == 1
    assert "cannot be written: File exists; name another file" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", ["following-java.md", "conformance.md"])
def test_docs_name_the_jar_of_this_version(page: str) -> None:
    text = (ROOT / "deploy/docs" / page).read_text(encoding="utf-8")

    assert set(re.findall(r"lagwise-follow-(\d[\w.]*)\.jar", text)) == {version("lagwise")}


@pytest.mark.parametrize(
    ("begins", "program"),
    [
        ("Map<TopicPartition, OffsetAndMetadata> offsets", SOURCES / "lagwise/follow/Transactions.java"),
        ("@Bean", APPS / "lagwise/spring/Application.java"),
    ],
)
def test_docs_show_the_code_that_the_tests_run(begins: str, program: Path) -> None:
    text = (ROOT / "deploy/docs/following-java.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```java\n(.+?)^```", text, re.DOTALL | re.MULTILINE)
    (shown,) = (block for block in blocks if block.startswith(begins))

    def words(code: str) -> list[str]:
        return [line.strip() for line in code.strip().splitlines()]

    assert "\n".join(words(shown)) in "\n".join(words(program.read_text(encoding="utf-8")))


def test_program_to_start_with_compiles_as_the_page_says(tmp_path: Path, class_path: str, jar: Path) -> None:
    text = (ROOT / "deploy/docs/following-java.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```java\n(.+?)^```", text, re.DOTALL | re.MULTILINE)
    (program,) = (block for block in blocks if "public class Billing " in block)
    (tmp_path / "Billing.java").write_text(program, encoding="utf-8")

    done = subprocess.run(
        [
            "javac",
            "-Xlint:all",
            "-Werror",
            "-proc:none",
            "-cp",
            f"{jar}{os.pathsep}{class_path}",
            "Billing.java",
        ],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
