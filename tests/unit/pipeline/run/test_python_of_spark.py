"""Where Spark finds Python beside a driver whose executors were sent theirs."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.run.spark.python_of_spark import provide

SENT = "./environment/bin/python"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("python", [sys.executable, "sh"])
def test_python_that_is_there_is_left_alone(python: str, tmp_path: Path) -> None:
    provide(python)

    assert not [*tmp_path.iterdir()]


def test_environment_of_executors_is_this_one_in_the_working_folder() -> None:
    provide(SENT)
    provide(SENT)

    prefix = subprocess.run(
        [SENT, "-c", "import sys; print(sys.prefix)"], capture_output=True, check=True, text=True
    )
    assert Path(prefix.stdout.strip()).resolve() == Path(sys.prefix).resolve()


def test_what_is_in_the_way_of_the_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()

    with pytest.raises(
        ConfigError, match=rf"{tmp_path}/environment cannot be made a link to .*: File exists"
    ):
        provide(SENT)


@pytest.mark.parametrize("python", ["/opt/nowhere/bin/python", "python-of-nobody", "./lib/of/python"])
def test_python_of_executors_that_this_host_lacks_is_refused(python: str) -> None:
    with pytest.raises(ConfigError, match=f"no {python} on this host"):
        provide(python)
