"""The chart, rendered by helm."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.tools import go_tool

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "lagwise"
EXAMPLES = sorted(CHART.glob("examples/*.yaml"))
LEAST = {"config": {"kafka": {"properties": {"bootstrap.servers": "kafka:9092"}}}}
Manifest = dict[str, Any]


@cache
def rendered(example: Path) -> str:
    """What the values of an example come to."""
    done = _template("--values", str(example))
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(values: Manifest) -> str:
    """What helm says of values that it refuses."""
    done = _template("--values", "-", values=values)
    assert done.returncode, done.stdout
    return done.stderr


def manifests(values: Manifest) -> list[Manifest]:
    """What values come to, which are no example."""
    done = _template("--values", "-", values=values)
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout)


def parsed(text: str) -> list[Manifest]:
    """One for each object."""
    return [found for found in yaml.safe_load_all(text) if found]


def of_kind(found: list[Manifest], kind: str) -> Manifest:
    """The only one of its kind, or the first."""
    return next(one for one in found if one["kind"] == kind)


def config_of(found: list[Manifest]) -> str:
    """lagwise.toml, as the pods have it."""
    return next(one["data"]["lagwise.toml"] for one in found if "lagwise.toml" in one.get("data", {}))


def _template(*arguments: str, values: Manifest | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [go_tool("helm"), "template", "lagwise", CHART, "--kube-version", "1.28", *arguments],
        input=None if values is None else json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
    )
