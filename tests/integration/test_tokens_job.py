"""The job on a cluster whose connections end with their tokens, after ten seconds: it logs in anew, in every process."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.config.model import SourceConfig
from pipeline.errors import AuthenticationError
from pipeline.kafka import tokens
from pipeline.operate.cli.app import app
from tests.support.brokers.broker import create_topics, produce
from tests.support.brokers.inject import commit_record, inject
from tests.support.brokers.oauth import PROVIDER, OAuthBroker
from tests.support.brokers.oauth_tokens import does, processes
from tests.support.job.job import RunningJob, eager_plan, health_of, job_config, running

TOPIC = "tokens-orders"
GONE = f"kafka.token_provider {PROVIDER} failed: PermissionError: the role of this host is gone"


@pytest.fixture(autouse=True)
def _no_token_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_sources", {})


def test_job_outlives_its_tokens_and_a_function_that_fails_for_a_while(
    oauth: OAuthBroker, tmp_path: Path
) -> None:
    does(tmp_path, "ok")
    create_topics(oauth.open_servers, {TOPIC: 1})
    produce(oauth.open_servers, TOPIC, {0: 10})
    config = job_config(
        oauth.servers, tmp_path / "tables", kafka=oauth.kafka(tmp_path), plan=eager_plan(dry_run=False)
    )
    with running(config, rests=False) as job:
        _assert_goes_on_through_token_after_token(job, oauth, tmp_path)
        _assert_tells_that_the_function_fails_and_goes_on_when_it_works(job, oauth, tmp_path)
        _assert_doctor_is_let_in(oauth, tmp_path)


def _assert_goes_on_through_token_after_token(job: RunningJob, oauth: OAuthBroker, folder: Path) -> None:
    for number in range(1, 4):
        calls = processes(folder).count(os.getpid())
        job.wait(
            lambda calls=calls: processes(folder).count(os.getpid()) > calls,
            what="the next token of the driver",
        )
        inject(oauth.open_servers, [commit_record("g", TOPIC, 0, number)])
        job.wait(lambda number=number: _lag(job) == 10 - number, what="the newest lag")
    assert _troubles(job) == []
    # The driver, the process that chooses batches, and workers.
    assert len(set(processes(folder))) >= 3


def _assert_tells_that_the_function_fails_and_goes_on_when_it_works(
    job: RunningJob, oauth: OAuthBroker, folder: Path
) -> None:
    does(folder, "fail")
    job.wait(lambda: any(GONE in reason for reason in health_of(job).reasons), what="the cause in health")
    assert any("Kafka is unavailable" in line and GONE in line for line in _troubles(job))

    does(folder, "ok")
    inject(oauth.open_servers, [commit_record("g", TOPIC, 0, 9)])
    job.wait(lambda: _lag(job) == 1, what="the lag after it works again")
    job.wait(lambda: health_of(job).is_ready, what="health")
    assert not any("Kafka denies access" in line for line in job.messages)


def _assert_doctor_is_let_in(oauth: OAuthBroker, folder: Path) -> None:
    lines = "".join(f'"{name}" = "{value}"\n' for name, value in oauth.properties(folder).items())
    file = folder / "lagwise.toml"
    file.write_text(
        f'[kafka]\ntoken_provider = "{PROVIDER}"\n[kafka.properties]\n{lines}[tables]\nroot = "{folder}/tables"\n',
        encoding="utf-8",
    )

    result = CliRunner().invoke(app, ("doctor", "--config", str(file)))

    assert "topic __consumer_offsets can be read" in result.output, result.output


def test_job_whose_tokens_are_refused_ends_and_says_why(oauth: OAuthBroker, tmp_path: Path) -> None:
    does(tmp_path, "wrong")
    job = RunningJob(
        job_config(
            oauth.servers,
            tmp_path / "tables",
            kafka=oauth.kafka(tmp_path),
            source=SourceConfig(request_timeout_s=3),
        )
    )
    job.start()
    job.join()

    assert isinstance(job.failure, AuthenticationError)
    assert "invalid_token" in str(job.failure)


def _lag(job: RunningJob) -> int | None:
    row = job.lags("g").get((TOPIC, 0))
    return None if row is None else row["lag"]


def _troubles(job: RunningJob) -> list[str]:
    return [line for line in job.messages if "Kafka is unavailable" in line or "Kafka denies access" in line]
