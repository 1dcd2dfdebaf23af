import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pipeline.errors import MissingDependencyError
from pipeline.local.shipped_code import zipped


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _sources(folder: Path, text: str) -> Path:
    for package in ("assignor", "pipeline", "tests"):
        (folder / package / "__pycache__").mkdir(parents=True, exist_ok=True)
        (folder / package / "__init__.py").write_text(text, encoding="utf-8")
        (folder / package / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"")
    return folder


def test_zip_has_the_two_packages_and_nothing_else(tmp_path: Path) -> None:
    file = zipped(_sources(tmp_path / "a", "x = 1"))

    assert zipfile.ZipFile(file).namelist() == ["assignor/__init__.py", "pipeline/__init__.py"]


def test_name_says_the_content(tmp_path: Path) -> None:
    first = zipped(_sources(tmp_path / "a", "x = 1"))

    assert zipped(_sources(tmp_path / "b", "x = 1")) == first
    assert zipped(_sources(tmp_path / "a", "x = 2")) != first
    assert first.is_file()
    assert [file.suffix for file in first.parent.iterdir()] == [".zip", ".zip"]


def test_modules_are_imported_from_it(tmp_path: Path) -> None:
    program = "import pipeline.source.reading as m, assignor.strategies.registry; print(m.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(zipped())}

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith(str(zipped()))


def test_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in its place", encoding="utf-8")

    with pytest.raises(
        MissingDependencyError, match=r"cache/lagwise cannot be written: Not a directory; fetch as"
    ):
        zipped(_sources(tmp_path / "a", "x = 1"))
