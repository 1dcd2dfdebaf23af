"""The rehearsal that makes class data archives: a failure costs speed alone, and says so."""

import subprocess
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from pipeline.operate import archives


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[MagicMock]:
    """Stand-ins for the broker's clients, in place of those that would connect."""
    made = [MagicMock(name=name) for name in ("AdminClient", "Producer", "Consumer")]
    for client in made:
        monkeypatch.setattr(archives, client._extract_mock_name(), client)
    monkeypatch.setattr(archives, "EmbeddedBroker", MagicMock())
    return made


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clients: list[MagicMock]) -> list[str]:
    """Lines of a rehearsal whose job does not end."""
    del clients
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    never = subprocess.TimeoutExpired(["spark-submit", *["--long"] * 50], 300)
    monkeypatch.setattr(archives.subprocess, "run", MagicMock(side_effect=never))
    lines: list[str] = []
    archives.make_archives(spark_jars=(), kafka_jars=(), report=lines.append)
    return lines


def test_job_that_does_not_end_is_reported_with_its_cause_and_what_tries_again(said: list[str]) -> None:
    assert said[-1] == (
        "the rehearsal failed, so starts stay slow (`python -m pipeline.operate.fetch` tries again): "
        "the job did not end within 300 s; is the machine busy?"
    )


def test_clients_of_the_rehearsal_log_nothing_while_the_broker_ends(
    said: list[str], clients: list[MagicMock]
) -> None:
    assert said
    assert [client.call_args[0][0]["log_level"] for client in clients] == [0, 0, 0]
