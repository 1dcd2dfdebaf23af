"""What the image is made by, in an empty folder: it starts without a network, a right or a folder but its own."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.chart import ROOT
from tests.deploy.contained import USER
from tests.deploy.tools import said, system_tool

# A gigabyte is installed and a start rehearsed: two minutes of processor time, and more on a machine that is busy.
pytestmark = pytest.mark.timeout(1200)

# Everything is read-only but for /tmp, which is empty, and the tables.
_CONTAINED = """
mount --make-rprivate /
ip link set lo up
mount --bind "$2" "$2"
mount -t tmpfs tmpfs /tmp
mount -o remount,bind,ro /
exec "$3" -m tests.deploy.contained "$1/bin/lagwise" "$1/cache" "$2"
"""
_FIND_ARCHIVE = """
from pipeline.local import class_data
from pipeline.local.jars import resolve_for_spark
from pipeline.run.spark.session import PACKAGES
print(class_data.found(class_data.archive("spark", class_data.spark_class_path(resolve_for_spark(PACKAGES)))))
"""

# Does of Python and pip what an installation over an older one of the same version depends on.
_PYTHON = """#!/bin/sh
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m pip wheel "*) for source; do :; done; cp "$source/code" "$7/lagwise-1-py3-none-any.whl" ;;
  "-m pip install "*"/lagwise-1-py3-none-any.whl"*)
    for wheel; do :; done
    installed=${0%/bin/python}/installed
    case "$*" in *--force-reinstall*) rm "$installed" ;; esac
    [ -e "$installed" ] || cp "${wheel%%\\[*}" "$installed" ;;
  -c*) mkdir -p broker && echo broker ;;
esac
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that is not below /tmp, and that everybody may look into."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="lagwise-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def python_for_all() -> str:
    """A Python that another user may run, too: one that somebody has installed at home is none."""
    another = [system_tool("setpriv", "util-linux"), f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    for program in (sys._base_executable, "/usr/bin/python3"):  # type: ignore[attr-defined]
        # By a shell: setpriv itself starts a program while it still may do everything.
        asked = [*another, "sh", "-c", '"$0" -c "import ensurepip"', program]
        if subprocess.run(asked, check=False, capture_output=True).returncode == 0:
            return str(program)
    pytest.fail("no Python that another user may run is here: apt-get install python3-venv")


@pytest.fixture(scope="module")
def installed(place: Path) -> Path:
    """lagwise, out of nothing but what an engine is given."""
    source = place / "src"
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for given in (line[1:] for line in lines if line.startswith("!")):
        target = source / given
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / given).is_dir():
            shutil.copytree(ROOT / given, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / given, target)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))
    }
    done = subprocess.run(
        [source / "deploy" / "image" / "install.sh", source, place / "lagwise"],
        env=environment | {"PYTHON": python_for_all()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(source)
    return place / "lagwise"


def _why_not(namespaces: list[str | Path]) -> str | None:
    """Why this machine cannot play a container; None where it can."""
    if any(Path("/tmp") in path.resolve().parents for path in (ROOT, Path.home())):  # noqa: S108 - what a container has of its own
        return "this clone or its caches are below /tmp, which is empty in a container"
    tried = subprocess.run([*namespaces, "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() or "no namespaces" if tried.returncode else None


def test_new_code_replaces_older_code_of_the_same_version(tmp_path: Path) -> None:
    python, code, target = tmp_path / "python", tmp_path / "src" / "code", tmp_path / "lagwise"
    python.write_text(_PYTHON, encoding="utf-8")
    python.chmod(0o755)
    code.parent.mkdir()

    for text in ("old", "new"):
        code.write_text(text, encoding="utf-8")
        subprocess.run(
            [ROOT / "deploy" / "image" / "install.sh", code.parent, target],
            env=os.environ | {"PYTHON": str(python)},
            check=True,
        )

    assert (target / "installed").read_text(encoding="utf-8") == "new"


def test_archive_of_classes_is_taken_after_an_engine_has_stored_the_files(installed: Path) -> None:
    jars = list(installed.rglob("*.jar"))

    assert len(jars) > 100
    # Layers keep whole seconds: what goes by less would not be known again.
    assert {jar.stat().st_mtime_ns % 1_000_000_000 for jar in jars} == {0}
    found = subprocess.run(
        [installed / "bin" / "python", "-c", _FIND_ARCHIVE],
        env={"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(installed / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(found.stdout.strip()).is_file()


def test_what_only_the_build_needs_is_gone(installed: Path) -> None:
    assert not list(installed.rglob("kafka_2.13-*.jar"))
    assert not (installed / "cache" / "lagwise" / "ivy").exists()
    assert len(list((installed / "cache" / "lagwise" / "jars").iterdir())) == 1


def test_driver_starts_as_in_a_container_and_writes_the_tables(installed: Path, place: Path) -> None:
    tables = place / "tables"
    tables.mkdir()
    os.chown(tables, USER, USER)
    namespaces = [system_tool("unshare", "util-linux"), "--mount", "--net"]
    if why := _why_not(namespaces):
        pytest.skip(why)

    said([*namespaces, "sh", "-euc", _CONTAINED, "contained", installed, tables, sys.executable])

    lag = said([installed / "bin" / "lagwise", "lag", "--tables", tables, "-o", "json"])
    assert [(row["group_id"], row["topic"], row["lag"]) for row in json.loads(lag)] == [
        ("billing", "invoices", 20)
    ]
    assert "was stopped" in said([installed / "bin" / "lagwise", "health", "--tables", tables], refused=True)
