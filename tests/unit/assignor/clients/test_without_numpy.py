"""A follower of kafka-python or aiokafka computes nothing, so it needs no numpy; the leader of its group does."""

import subprocess
import sys

import pytest

BOTH = pytest.mark.parametrize("client", ["kafka_python", "aiokafka"])


def run(client: str, role: str) -> str:
    command = [sys.executable, "-m", "tests.support.followers.without_numpy", client, role]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@BOTH
def test_member_that_does_not_lead_takes_in_its_assignment_and_acknowledges_it_without_numpy(
    client: str,
) -> None:
    said = run(client, "follows")

    assert "{'t': (1,)}" in said
    assert "Applied(" in said
    assert "generation=3, epoch=9, member='m'" in said


@BOTH
def test_leader_without_numpy_says_what_to_install(client: str) -> None:
    said = run(client, "leads")

    assert said.startswith("CannotLeadError: ")
    assert "No module named 'numpy'" in said
    assert "pip install 'numpy>=2,<3'" in said
