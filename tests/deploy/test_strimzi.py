"""Strimzi's own classes read the Kafka resource of following-broker.md: its operator drops what it forbids."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from pipeline.local.jars import resolve
from pipeline.local.java import find_java

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "deploy/docs/following-broker.md"
_API = "io.strimzi:api:0.51.0"
"""The newest one for Java 17."""
_BLOCK = re.compile(r"```yaml\n(apiVersion: kafka\.strimzi\.io/v1\nkind: Kafka\n.*?)```", re.DOTALL)
_TIMEOUT_S = 120


def _shown() -> str:
    match = _BLOCK.search(_PAGE.read_text(encoding="utf-8"))
    assert match is not None, "the page shows no Kafka resource"
    return match[1]


def _not_taken(resource: str) -> list[str]:
    """What Strimzi would not take of it."""
    jars = os.pathsep.join(str(jar) for jar in resolve((_API,)))
    command = [str(find_java()), "-cp", jars, str(Path(__file__).with_name("StrimziCheck.java"))]
    done = subprocess.run(
        command, input=resource, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_strimzi_knows_every_field_and_forbids_no_property_of_the_resource_that_the_page_shows() -> None:
    assert _not_taken(_shown()) == []


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("config", {"sasl.jaas.config": "x"}, "forbidden: sasl.jaas.config"),
        ("imagine", "x", "unknown: spec.kafka.imagine"),
    ],
)
def test_what_strimzi_would_not_take_is_found(field: str, value: object, said: str) -> None:
    resource = yaml.safe_load(_shown())
    spec = resource["spec"]["kafka"]
    spec[field] = spec.get(field, {}) | value if isinstance(value, dict) else value
    assert _not_taken(yaml.safe_dump(resource)) == [said]


def test_the_image_of_the_page_runs_the_version_of_kafka_that_the_resource_names() -> None:
    version = yaml.safe_load(_shown())["spec"]["kafka"]["version"]
    strimzi = _API.rpartition(":")[2]
    assert f"FROM quay.io/strimzi/kafka:{strimzi}-kafka-{version}\n" in _PAGE.read_text(encoding="utf-8")
