"""The Sparks that managed services have: the job from the wheel, on a real broker, on each of them."""

import json
from collections.abc import Callable

import pytest

from tests.support.wheels import Environment

_WITHIN_S = 400.0


@pytest.fixture(scope="module", params=["4.0.1", "4.1.1"])
def spark(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def environment(spark: str, installed: Callable[..., Environment]) -> Environment:
    return installed("stream,demo", f"pyspark=={spark}")


def test_demo_measures_and_publishes(environment: Environment, spark: str) -> None:
    version = environment.run("python", "-c", "import pyspark; print(pyspark.__version__)")
    done = environment.run("lagwise", "demo", "--seconds", "60", "--json", "summary.json", within_s=_WITHIN_S)

    assert version.stdout.strip() == spark
    assert done.returncode == 0, done.stderr
    summary = json.loads((environment.place / "summary.json").read_text(encoding="utf-8"))
    assert summary["batches"] >= 3
    assert summary["groups"] >= 4
    assert summary["published"] >= 1
