"""A cluster that does not let everybody in: what is wrong is said, and what waiting does not cure is not waited for.

What suffices is shown by `test_follow_loop`.
"""

from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType
from typer.testing import CliRunner

from assignor.clients.confluent import Follower
from assignor.clients.confluent_config import FollowerConfigError
from pipeline import cluster
from pipeline.cli import app
from pipeline.config_model import ControlConfig, KafkaConfig, SourceConfig
from pipeline.errors import AccessRefusedError, BrokerUnavailableError
from tests.support.broker import create_topics
from tests.support.job import RunningJob, job_config
from tests.support.secured import Secured

TOPIC = ResourceType.TOPIC


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sasl.username": "nobody"}, "invalid credentials"),
        ({"ssl.ca.location": None}, "verify that ssl.ca.location is correctly configured"),
        ({"security.protocol": "PLAINTEXT"}, "is security.protocol what is spoken there?"),
        ({"bootstrap.servers": "127.0.0.1:1"}, "Connection refused"),
        ({"bootstrap.servers": "no-such-host:9092"}, "Failed to resolve 'no-such-host:9092'"),
    ],
    ids=["user", "certificate", "protocol", "port", "host"],
)
@pytest.mark.parametrize("command", [("orders",), ("control", "tail")], ids=" ".join)
def test_command_that_cannot_get_in_says_why_in_one_line(
    secured: Secured, tmp_path: Path, command: tuple[str, ...], changes: dict[str, str | None], reason: str
) -> None:
    file = tmp_path / "lagwise.toml"
    settings = {**secured.settings("somebody"), **changes}
    lines = "".join(f'"{name}" = "{value}"\n' for name, value in settings.items() if value is not None)
    file.write_text(f"[kafka.properties]\n{lines}[source]\nrequest_timeout_s = 1\n", encoding="utf-8")

    result = CliRunner().invoke(app, (*command, "--config", str(file)))

    assert result.exit_code == 1
    assert result.stderr.startswith("lagwise: no broker answers: ")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_job_whose_user_is_refused_ends_and_says_why(secured: Secured, tmp_path: Path) -> None:
    config = job_config(
        secured.servers,
        tmp_path / "tables",
        kafka=KafkaConfig(properties=secured.settings("nobody")),
        source=SourceConfig(request_timeout_s=1),
    )
    job = RunningJob(config)
    job.start()
    job.join()

    assert isinstance(job.failure, AccessRefusedError)
    assert "invalid credentials" in str(job.failure)
    assert [line for line in job.messages if "Kafka says no" in line and "invalid credentials" in line]


def test_right_that_is_missing_is_named_with_its_topic(secured: Secured) -> None:
    user, control = "newcomer", ControlConfig(topic="new.c", acks_topic="new.a", commands_topic="new.o")
    topics = (control.topic, control.acks_topic, control.commands_topic)
    secured.add_user(user)
    admin = AdminClient({**secured.properties(user)})

    def refusal() -> str:
        with pytest.raises((AccessRefusedError, BrokerUnavailableError)) as refused:
            cluster.inspect(admin, control, timeout_s=2)
        return str(refused.value)

    assert "topic new.c cannot be made: " in refusal()
    secured.allow(user, *((AclOperation.CREATE, TOPIC, name) for name in topics))
    hidden = refusal()
    assert hidden.startswith("topics __consumer_offsets, new.a, new.o, new.c did not appear within 2 s")
    assert "may not describe them" in hidden
    secured.allow(user, *((AclOperation.READ, TOPIC, name) for name in topics))
    assert refusal().startswith("topics __consumer_offsets did not appear")
    secured.allow(user, (AclOperation.READ, TOPIC, "__consumer_offsets"))
    # Nor need it be allowed to read the control topic's configuration.
    assert cluster.inspect(admin, control, timeout_s=2).max_record_bytes == control.max_record_bytes


def test_follower_that_may_not_read_the_control_topic_says_so(secured: Secured) -> None:
    create_topics(secured.open_servers, {"hidden": 1})
    secured.add_user("outsider")
    config = {**secured.properties("outsider"), "group.id": "g", "enable.auto.commit": False}

    with pytest.raises(
        FollowerConfigError, match=r"hidden: this topic cannot be used: .*uthorization failed"
    ):
        Follower(config, ["t"], control_topic="hidden", acks_topic="hidden")
