"""What is wrong in the values is refused before anything is installed, and the reason names it."""

from copy import deepcopy
from typing import Any

import pytest

from tests.deploy.chart import LEAST, refusal

_PROPERTIES = ("config", "kafka", "properties")


def with_value(value: object, *path: str) -> dict[str, Any]:
    """The least values, and this one."""
    values = deepcopy(LEAST)
    at: dict[str, Any] = values
    for name in path[:-1]:
        at = at.setdefault(name, {})
    at[path[-1]] = value
    return values


def test_without_brokers_nothing_is_rendered() -> None:
    assert "missing property 'bootstrap.servers'" in refusal({})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (True, ("standby",)),  # on a volume for one node
        ("yes", ("standby",)),
        ("once", ("takeOver",)),
        (2, ("replicas",)),
        ("ReadWriteSome", ("persistence", "accessMode")),
        ("20 GB", ("persistence", "size")),
        ("secret", (*_PROPERTIES, "sasl.password")),
        ("file://host/secret", (*_PROPERTIES, "sasl.password")),
        ("", (*_PROPERTIES, "bootstrap.servers")),
        ("127.0.0.1", ("config", "health", "host")),
        (0, ("config", "health", "port")),
        ("a-token-in-plain-text", ("config", "serve", "token")),
        ("/var/lib/lagwise", ("config", "tables", "root")),
        ("/data/../var", ("config", "tables", "root")),
        ("gs://bucket/lagwise", ("config", "tables", "root")),
        ("sha256:12", ("image", "digest")),
        (["Kafka_User"], ("existingSecrets",)),
        (["9092"], ("networkPolicy", "brokerPorts")),
        ([0], ("networkPolicy", "objectStorePorts")),
        (["everywhere"], ("networkPolicy", "egress")),
        ("sometimes", ("monitoring", "serviceMonitor", "interval")),
        ("Bearer", ("monitoring", "serviceMonitor", "authorization")),
        ("git.example.org", ("monitoring", "rules", "runbookUrl")),
        (1, ("terminationGracePeriodSeconds",)),
        ({"a": 1}, ("podLabels",)),
        ("4 GB", ("tmpSizeLimit",)),
        ("0Gi", ("tmpSizeLimit",)),
        (4096, ("tmpSizeLimit",)),
    ],
)
def test_wrong_value_is_refused_by_its_name(value: object, path: tuple[str, ...]) -> None:
    said = refusal(with_value(value, *path))

    assert "values don't meet the specifications of the schema" in said
    assert path[-1] in said or "/persistence/accessMode" in said
