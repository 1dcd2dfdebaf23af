"""The jar for brokers: the same from each build, with its coordinates inside and nothing of Kafka."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

from pipeline.local.jars import resolve
from tests.support.java.broker_jar import OLDEST, ROOT, broker_jar

BUILD = ROOT / "deploy/java/build.py"
NAME = "lagwise-broker-assignor"


def built(folder: Path, **environment: str) -> Path:
    """The jar that is built where nothing was set up."""
    jar = folder / f"{NAME}-{version('lagwise')}.jar"
    done = subprocess.run(
        [sys.executable, "-S", str(BUILD), "--broker-assignor", str(jar)],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
    )
    assert done.returncode == 0, done.stderr
    return jar


def test_two_builds_are_the_same_bytes_with_coordinates_and_without_dependencies(tmp_path: Path) -> None:
    broker_jar()
    path = os.pathsep.join(map(str, resolve((f"org.apache.kafka:kafka-group-coordinator-api:{OLDEST}",))))
    one, two = (built(tmp_path / zone, KAFKA_BROKER=path, TZ=zone) for zone in ("UTC", "Asia/Tokyo"))

    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as inside:
        classes = {name.rpartition("/")[0] for name in inside.namelist() if name.endswith(".class")}
        pom = inside.read(f"META-INF/maven/lagwise/{NAME}/pom.xml").decode()
        manifest = inside.read("META-INF/MANIFEST.MF").decode()
    assert classes == {"lagwise/broker", "lagwise/control"}
    assert one.with_suffix(".pom").read_text() == pom
    assert f"<artifactId>{NAME}</artifactId>" in pom
    assert f"<version>{version('lagwise')}</version>" in pom
    assert "<scope>provided</scope>" in pom
    assert f"Implementation-Title: {NAME}\r\nImplementation-Version: {version('lagwise')}\r\n" in manifest


def test_docs_name_the_jar_of_this_version() -> None:
    text = (ROOT / "deploy/docs/following-broker.md").read_text(encoding="utf-8")

    assert f"{NAME}-{version('lagwise')}.jar" in text
