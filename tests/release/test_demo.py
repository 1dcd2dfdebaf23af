"""The demo from a wheel, in an environment that has never seen the checkout."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.wheels import ROOT, Environment

_WITHIN_S = 400.0


@pytest.fixture(scope="module")
def environment(installed: Callable[[str], Environment]) -> Environment:
    return installed("stream,demo,serve")


def test_nothing_is_imported_from_the_checkout(environment: Environment) -> None:
    code = "import sys, assignor, pipeline; print(*sys.path, assignor.__file__, pipeline.__file__, sep='\\n')"

    done = environment.run("python", "-c", code)

    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stdout.split() if Path(line).is_relative_to(ROOT)]


def test_demo_runs_and_leaves_its_summary_and_plot(environment: Environment) -> None:
    done = environment.run("lagwise", "demo", "--seconds", "15", "--json", "summary.json", within_s=_WITHIN_S)

    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((environment.place / "summary.json").read_text(encoding="utf-8"))
    assert summary["batches"] >= 1
    assert summary["groups"] >= 1
    assert (environment.place / ".lagwise" / "lagwise-demo.html").exists()
