"""Wheel and source archive hold all that belongs to this version, and name it as everything else does."""

import re
import tarfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

from pipeline.config.load import tomllib
from tests.support.wheels import ROOT, Built, build

_PACKAGES = ("assignor", "pipeline")
_LEFT_BEHIND = {"__pycache__"}


def files_of(wheel: Path) -> dict[str, int]:
    """Names and checksums of the files of the packages."""
    with ZipFile(wheel) as archive:
        return {one.filename: one.CRC for one in archive.infolist() if ".dist-info/" not in one.filename}


def metadata_of(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def project() -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def test_every_file_of_the_packages_is_in_the_wheel_and_no_other(built: Built) -> None:
    present = {
        str(file.relative_to(ROOT))
        for package in _PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and not _LEFT_BEHIND & set(file.parts)
    }

    assert set(files_of(built.wheel)) == present
    assert {name.rpartition(".")[2] for name in present} >= {"css", "html", "json", "properties", "toml"}


def test_source_archive_makes_the_same_wheel(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()

    again = build(source, tmp_path / "again")

    assert files_of(again.wheel) == files_of(built.wheel)
    assert (source / "conf" / "lagwise.toml").exists()
    assert (source / "deploy" / "submit.sh").exists()


def test_version_of_the_wheel_is_the_newest_of_the_changelog(built: Built) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", changelog, re.MULTILINE)

    assert sections[0] == "[Unreleased]"
    version = project()["version"]
    assert re.fullmatch(rf"\[{version}\] - \d{{4}}-\d\d-\d\d", sections[1])
    assert metadata_of(built.wheel)["Version"] == version
    assert built.wheel.name == f"lagwise-{version}-py3-none-any.whl"
    assert built.sdist.name == f"lagwise-{version}.tar.gz"


_STATED = re.compile(
    r'(?:lagwise(?:-spark)?:|ARG VERSION=|^appVersion: "|^version: )(\d+\.\d+\.\d+)', re.MULTILINE
)


def test_images_and_chart_are_of_the_same_version() -> None:
    files = [
        file
        for pattern in ("Dockerfile", "Chart.yaml", "compose.yaml", "*.yaml", "*.md")
        for file in (ROOT / "deploy").rglob(pattern)
    ]
    stated = {
        str(file.relative_to(ROOT)): set(found)
        for file in files
        if (found := _STATED.findall(file.read_text(encoding="utf-8")))
    }

    assert {"deploy/Dockerfile", "deploy/compose.yaml", "deploy/helm/lagwise/Chart.yaml"} <= stated.keys()
    assert set().union(*stated.values()) == {project()["version"]}, stated


def test_licence_is_named_and_enclosed(built: Built) -> None:
    metadata = metadata_of(built.wheel)

    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    with ZipFile(built.wheel) as archive:
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())
