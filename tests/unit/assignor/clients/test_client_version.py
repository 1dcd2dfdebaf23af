"""Client libraries of another version are refused in words, at the import of the adapter."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from assignor.clients import client_version
from assignor.clients.client_version import UnsupportedClientError, require
from assignor.errors import AssignorError
from pipeline.config.load import tomllib

_ROOT = Path(__file__).parents[4]
KAFKA = "kafka.coordinator.base:BaseCoordinator"


def required(**more: object) -> None:
    asked = {"least": (3, 0, 12), "below": (3, 1), "parts": [f"{KAFKA}.need_rejoin"], "extra": "kafka-python"}
    require("kafka-python", **{**asked, **more})  # type: ignore[arg-type]


def refused(module: str, version: str) -> str:
    """What the import of an adapter says where that version of its client is installed."""
    code = f"""import importlib.metadata
importlib.metadata.version = lambda name: {version!r}
try:
    import assignor.clients.{module}
except ImportError as error:
    print(type(error).__name__, error)
"""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("module", "version", "wanted"),
    [
        ("kafka_python", "2.3.3", "kafka-python>=3.0.12,<3.1"),
        ("kafka_python", "3.0.6", "kafka-python>=3.0.12,<3.1"),
        ("kafka_python", "3.1.0", "kafka-python>=3.0.12,<3.1"),
        ("aiokafka", "0.13.0", "aiokafka>=0.14.0,<0.15"),
        ("aiokafka", "0.15.0rc1", "aiokafka>=0.14.0,<0.15"),
        ("confluent", "2.15.1", "confluent-kafka>=2.16"),
    ],
)
def test_adapter_says_which_version_there_is_and_what_to_install(
    module: str, version: str, wanted: str
) -> None:
    said = refused(module, version)

    assert said.startswith("UnsupportedClientError ")
    assert f" {version} cannot follow plans" in said
    assert f"lagwise needs {wanted}: install it with: pip install" in said
    assert f"'{wanted}'" in said


@pytest.mark.parametrize("extra", ["confluent", "kafka-python", "aiokafka"])
def test_extra_of_lagwise_follow_allows_the_versions_that_its_adapter_accepts(extra: str) -> None:
    template = (_ROOT / "deploy/follow/pyproject.toml").read_text(encoding="utf-8")
    client, *_ = tomllib.loads(template)["project"]["optional-dependencies"][extra]

    assert f"lagwise needs {client}: " in refused(extra.replace("-", "_"), "0.0.0")


def test_client_that_is_not_installed_is_named() -> None:
    code = """import importlib.metadata as metadata
def none(name): raise metadata.PackageNotFoundError(name)
metadata.version = none
try:
    import assignor.clients.aiokafka
except ImportError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout

    assert said.startswith("aiokafka is not installed; lagwise needs aiokafka>=0.14.0,<0.15")


def test_part_that_a_release_has_taken_away_is_named() -> None:
    with pytest.raises(
        UnsupportedClientError, match=r"it has no kafka\.coordinator\.base\.BaseCoordinator\.gone;"
    ):
        required(parts=[f"{KAFKA}.need_rejoin", f"{KAFKA}.gone"])
    with pytest.raises(AssignorError, match=r"it has no kafka\.gone\.Thing;"):
        required(parts=["kafka.gone:Thing"])


@pytest.mark.parametrize("version", ["3.0.12", "3.0.13", "3.0.12.post1", "3.0.20rc1"])
def test_later_release_of_the_same_series_is_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_version, "version", lambda _: version)

    required()


def test_versions_that_are_pinned_are_taken() -> None:
    assert metadata.version("kafka-python") == "3.0.12"

    required()
