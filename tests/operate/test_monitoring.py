"""Prometheus takes the alert rules, and they fire when they should and not otherwise."""

import subprocess

from tests.operate.prometheus import installed
from tests.support.monitoring import HOME, TESTS


def promtool(*arguments: object) -> str:
    """What it says when all is well."""
    command = [str(part) for part in (installed("promtool"), *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rules_are_sound() -> None:
    assert "10 rules found" in promtool("check", "rules", HOME / "alerts.yaml")


def test_rules_fire_when_they_should_and_not_otherwise() -> None:
    assert promtool("test", "rules", *TESTS).count("SUCCESS") == len(TESTS)
