"""deploy/submit.sh with a spark-submit that only looks like one, and what Spark's own makes of its command."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pipeline.run.spark.session import DRIVER_JVM
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
STATUS = 3
# The JVM has two Python children: the driver, and the daemon of the tasks.
LOOKS_LIKE_ONE = f"""#!{sys.executable}
import subprocess, sys
(main,) = (word for word in sys.argv if word.endswith("main.py"))
def child(*words):
    return subprocess.Popen([sys.executable, {{child!r}}, *words], stdin=subprocess.PIPE)
daemon, driver = child("daemon", "-m", "pyspark.daemon"), child("driver", main)
status = driver.wait()
daemon.communicate()
sys.exit(status)
"""
CHILD = f"""
import pathlib, signal, sys
role = sys.argv[1]
def told(*_):
    pathlib.Path(role + "-told").touch()
    if role == "driver":
        sys.exit({STATUS})
signal.signal(signal.SIGTERM, told)
pathlib.Path(role).touch()
sys.stdin.read()
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose path means something to a shell, and to a regular expression."""
    folder = tmp_path / "c++ (1) [x]"
    (folder / "deploy").mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "submit.sh", folder / "deploy")
    for name in ("assignor", "pipeline"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """Stands for spark-submit; its path means something to `env`."""
    child, program = tmp_path / "child.py", tmp_path / "spark=4" / "spark-submit"
    program.parent.mkdir()
    child.write_text(CHILD)
    program.write_text(LOOKS_LIKE_ONE.format(child=str(child)))
    program.chmod(0o755)
    return program


@contextmanager
def started(checkout: Path, *arguments: str, at: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The script of a checkout, which leaves nothing behind."""
    with subprocess.Popen(
        [checkout / "deploy" / "submit.sh", *arguments],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"} | variables,
        cwd=at,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def ended(checkout: Path, *arguments: str, at: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The same, once it has ended by itself."""
    with started(checkout, *arguments, at=at, **variables) as process:
        out, error = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def test_sigterm_is_for_the_driver_and_not_for_the_python_of_its_tasks(
    checkout: Path, fake: Path, tmp_path: Path
) -> None:
    with started(checkout, "--config", "my.toml", at=tmp_path, SPARK_SUBMIT=str(fake)) as script:
        for role in ("driver", "daemon"):
            wait_until((tmp_path / role).exists, what=f"the start of the {role}")

        script.terminate()

        assert script.wait(30) == STATUS
    assert (tmp_path / "driver-told").exists()
    assert not (tmp_path / "daemon-told").exists()


@pytest.mark.parametrize(("told", "memory"), [({}, "2g"), ({"SPARK_DRIVER_MEMORY": "8g"}, "8g")])
def test_driver_has_two_gigabytes_where_nobody_says_another(
    checkout: Path, fake: Path, tmp_path: Path, told: dict[str, str], memory: str
) -> None:
    fake.write_text("#!/bin/sh\necho $SPARK_DRIVER_MEMORY; exit 0")

    done = ended(checkout, "--config", "my.toml", at=tmp_path, SPARK_SUBMIT=str(fake), **told)

    assert (done.returncode, done.stdout) == (0, f"{memory}\n")


def test_modules_of_the_working_folder_are_not_taken_for_those_of_the_checkout(
    checkout: Path, fake: Path, tmp_path: Path
) -> None:
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "__init__.py").write_text("raise SystemExit('another one')")

    done = ended(checkout, "--config", at=tmp_path, SPARK_SUBMIT=str(fake))

    assert "another one" not in done.stderr
    assert "--config: expected one argument" in done.stderr


def test_host_without_pkill_is_named_before_anything_starts(
    checkout: Path, fake: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "env", "java"):
        (tools / name).symlink_to(str(shutil.which(name)))

    done = ended(checkout, "--config", "my.toml", at=tmp_path, PATH=str(tools), SPARK_SUBMIT=str(fake))

    assert done.returncode == 1
    assert "no pkill on this host" in done.stderr
    assert not (tmp_path / "driver").exists()


def test_what_is_wrong_is_said_before_anything_starts(checkout: Path, fake: Path, tmp_path: Path) -> None:
    done = ended(checkout, "--config", at=tmp_path, SPARK_SUBMIT=str(fake))

    assert done.returncode == 1
    assert "--config: expected one argument" in done.stderr
    assert not (tmp_path / "driver").exists()


def test_spark_has_what_the_user_says_and_what_lagwise_brings(tmp_path: Path) -> None:
    for name in ("own.jar", "own.zip", "own.txt"):
        (tmp_path / name).touch()
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.files own.txt\n"
        "spark.driver.extraClassPath own.jar\n"
        "spark.driver.extraJavaOptions -Dextra=1\n"
        "spark.driver.defaultJavaOptions \\\n  -Ddefault=1\n"
    )
    (tmp_path / "spark-env.sh").write_text("SPARK_DRIVER_MEMORY=700m")

    done = ended(
        ROOT,
        "--config=none.toml",
        at=tmp_path,
        SPARK_CONF_DIR=str(tmp_path),
        SUBMIT_ARGS="--verbose --master=local[1] --jars=own.jar --py-files 'own.zip'",
        LAGWISE_FILES="own.jar",
    )

    assert done.returncode == 1
    assert "none.toml: no such file" in done.stdout
    lines = [
        line.split(maxsplit=1) for line in done.stderr.partition("Spark properties used")[0].splitlines()
    ]
    parsed = {line[0]: line[1] for line in lines if len(line) > 1}
    jars, py_files, files = (
        [Path(one).name for one in parsed[key].split(",")] for key in ("jars", "pyFiles", "files")
    )
    assert jars[0] == "own.jar"
    assert any(name.startswith("delta-spark") for name in jars[1:])
    assert py_files[0] == "own.zip"
    assert py_files[1].startswith("lagwise-")
    assert files == ["own.txt", "own.jar"]
    assert (parsed["driverMemory"], parsed["driverExtraClassPath"]) == ("700m", "own.jar")
    assert parsed["driverExtraJavaOptions"] == "-Dextra=1"
    (default,) = (
        line for line in done.stderr.splitlines() if line.startswith("(spark.driver.defaultJavaOptions,")
    )
    # Of two equal options Java takes the last.
    assert f"log4j2.properties {' '.join(DRIVER_JVM)} -Ddefault=1" in default
