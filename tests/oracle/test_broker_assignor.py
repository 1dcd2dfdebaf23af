"""The brokers' assignor against the classes of each Kafka that it is for, its own UniformAssignor among them."""

import re
import subprocess

import pytest

from tests.support.java.broker_jar import VERSIONS, broker_jar

CHECKS = 48


@pytest.mark.parametrize("version", VERSIONS)
def test_assignor_keeps_what_it_promises(version: str) -> None:
    command = broker_jar().command(version, "lagwise.broker.Checks")
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=60)

    checked = dict(re.findall(r"^check (\w+): (.+)$", done.stdout, re.MULTILINE))
    assert len(checked) == CHECKS, done.stdout + done.stderr
    assert set(checked.values()) == {"ok"}, done.stdout + done.stderr
