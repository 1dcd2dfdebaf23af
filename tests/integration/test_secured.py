"""A cluster that does not let everybody in: what is wrong is said, and what waiting does not cure is not waited for.

What suffices is shown by `test_follow_loop`.
"""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType
from typer.testing import CliRunner

from assignor.clients.confluent import Follower
from assignor.protocol import control
from assignor.protocol.acks import Applied
from assignor.protocol.control import ControlRecord
from pipeline.config.model import ControlConfig, KafkaConfig, SourceConfig
from pipeline.errors import AccessRefusedError
from pipeline.kafka import cluster
from pipeline.kafka.migration import MigrationWatch
from pipeline.operate.cli.app import app
from tests.support.brokers.acks_topic import read_acks
from tests.support.brokers.broker import create_topics, produce
from tests.support.brokers.secured import Secured
from tests.support.followers.follow_plans import key_of, plan
from tests.support.job.job import RunningJob, job_config
from tests.support.operate.page_rights import rights_of
from tests.support.waiting import wait_until

TOPIC = ResourceType.TOPIC


@pytest.mark.parametrize(
    ("command", "changes", "reason"),
    [
        ("orders", {"sasl.username": "nobody"}, "cluster cannot be used: .* invalid credentials"),
        ("control tail", {"sasl.username": "nobody"}, "cluster cannot be used: .* invalid credentials"),
        (
            "orders",
            {"ssl.ca.location": None},
            "cluster cannot be used: .* verify that ssl.ca.location is correct",
        ),
        (
            "orders",
            {"security.protocol": "PLAINTEXT"},
            "cluster cannot be used: .* or another security.protocol",
        ),
        ("orders", {"bootstrap.servers": "127.0.0.1:1"}, "cluster cannot be used: .* Connection refused"),
        ("orders", {"ssl.ca.location": "/no-such-file"}, r"kafka\.properties: .*ssl\.ca\.location failed"),
        ("control tail", {"sasl.mechanism": "HOPE"}, r"kafka\.properties: .*HOPE"),
    ],
    ids=["user", "user of another command", "certificate", "protocol", "port", "file", "mechanism"],
)
def test_command_that_cannot_get_in_says_why_in_one_line(
    secured: Secured, tmp_path: Path, command: str, changes: dict[str, str | None], reason: str
) -> None:
    file = tmp_path / "lagwise.toml"
    settings = {**secured.settings("somebody"), **changes}
    lines = "".join(f'"{name}" = "{value}"\n' for name, value in settings.items() if value is not None)
    file.write_text(f"[kafka.properties]\n{lines}[source]\nrequest_timeout_s = 3\n", encoding="utf-8")

    result = CliRunner().invoke(app, (*command.split(), "--config", str(file)))

    assert result.exit_code == 1
    assert re.match(f"lagwise: .*{reason}", result.stderr), result.stderr
    assert result.stderr.count("\n") == 1


def test_job_whose_user_is_refused_ends_and_says_why(secured: Secured, tmp_path: Path) -> None:
    config = job_config(
        secured.servers,
        tmp_path / "tables",
        kafka=KafkaConfig(properties=secured.settings("nobody")),
        source=SourceConfig(request_timeout_s=3),
    )
    job = RunningJob(config)
    job.start()
    job.join()

    assert isinstance(job.failure, AccessRefusedError)
    assert "invalid credentials" in str(job.failure)
    assert [line for line in job.messages if "Kafka denies access" in line and "invalid credentials" in line]
    password = secured.password_file.read_text()
    assert not any(password in line for line in (*job.messages, str(job.failure)))


def test_right_that_is_missing_is_named_with_its_topic(secured: Secured) -> None:
    user, control = "newcomer", ControlConfig(topic="new.c", acks_topic="new.a", commands_topic="new.o")
    topics = (control.topic, control.acks_topic, control.commands_topic)
    secured.add_user(user)
    admin = AdminClient({**secured.properties(user)})

    def is_refused(about: str) -> bool:
        # What was allowed before this holds a moment later.
        with pytest.raises(AccessRefusedError, match=r"deploying-security\.md lists the rights") as refused:
            cluster.inspect(admin, control, timeout_s=1)
        return str(refused.value).startswith(about)

    def is_let_in() -> bool:
        with suppress(AccessRefusedError):
            return (
                cluster.inspect(admin, control, timeout_s=1).configs.max_record_bytes
                == control.max_record_bytes
            )
        return False

    assert is_refused("topic new.c cannot be created: ")
    secured.allow(user, *((AclOperation.CREATE, TOPIC, name) for name in topics))
    wait_until(lambda: is_refused("topic __consumer_offsets cannot be used: "), what="the topics made")
    secured.allow(user, (AclOperation.READ, TOPIC, "__consumer_offsets"))
    wait_until(lambda: is_refused("topic new.a cannot be used: "), what="the offsets topic shown")
    secured.allow(user, *((AclOperation.READ, TOPIC, name) for name in topics))
    # The configuration of the control topic may stay hidden.
    wait_until(is_let_in, what="nothing missing any more")


def test_migration_is_unknown_without_the_right_to_read_brokers_and_known_with_it(
    secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    secured.add_user("watcher")
    admin = AdminClient({**secured.properties("watcher")})

    before = MigrationWatch(admin)()
    # Kafka's code of the cluster as a resource, which this client calls a broker.
    secured.allow("watcher", (AclOperation.DESCRIBE_CONFIGS, ResourceType.BROKER, "kafka-cluster"))
    wait_until(lambda: MigrationWatch(admin)() == "disabled", what="the right to take effect")

    assert before == "unknown"
    assert "Cluster authorization failed. (deploying-security.md lists the rights" in str(
        vars(caplog.records[0])["problem"]
    )


def test_follower_that_may_not_read_the_control_topic_says_so_and_is_a_plain_consumer(
    secured: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    create_topics(secured.open_servers, {"hidden": 1})
    secured.add_user("outsider")
    config = {**secured.properties("outsider"), "group.id": "g", "enable.auto.commit": False}

    def said() -> bool:
        return any("topic hidden may not be read by this user" in one.getMessage() for one in caplog.records)

    with Follower(config, ["t"], control_topic="hidden", acks_topic="hidden"):
        wait_until(said, what="the refusal in the log")

    assert sum("follows no plan for now" in one.getMessage() for one in caplog.records) == 1


def plan_for(follower: Follower, topic: str) -> ControlRecord:
    """It moves nothing, and is accepted all the same."""
    state = follower.state
    base = {state.member: sorted(number for _, number in state.base)}
    names = {"topic": topic, "group": state.settings.group}
    return plan(base, base, generation=state.generation, cluster="loc", **names)


def consumed(follower: Follower, secured: Secured, topic: str) -> bool:
    """Whether a record that is written now arrives."""
    produce(secured.open_servers, topic, {0: 1})
    message = follower.poll(1.0)
    return message is not None and message.error() is None


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ((AclOperation.READ, "control"), "topic {control} may not be read by this user"),
        ((AclOperation.READ, "acks"), "topic {acks} may not be read by this user"),
        ((AclOperation.WRITE, "acks"), "topic {acks} cannot be written"),
        (None, ""),
    ],
    ids=["read control", "read acks", "write acks", "none"],
)
def test_follower_with_the_lines_of_the_page_follows_and_without_one_of_them_consumes_and_says_so(
    secured: Secured,
    caplog: pytest.LogCaptureFixture,
    missing: tuple[AclOperation, str] | None,
    problem: str,
) -> None:
    user = "-".join(str(word) for word in (missing[0].name, missing[1])).lower() if missing else "billing"
    names = {part: f"{user}.{part}" for part in ("control", "acks", "topic", "group")}
    create_topics(secured.open_servers, {names[part]: 1 for part in ("control", "acks", "topic")})
    page = {"billing": "group", "invoices": "topic", "lagwise.assignments": "control", "lagwise.acks": "acks"}
    rights = rights_of("billing", {name: names[part] for name, part in page.items()})
    left_out = (missing[0], TOPIC, names[missing[1]]) if missing else None
    secured.add_user(user)
    secured.allow(user, *(right for right in rights if right != left_out))
    config = {
        **secured.properties(user),
        "group.id": names["group"],
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    topics = {"control_topic": names["control"], "acks_topic": names["acks"], "cluster": "loc"}

    with Follower(config, [names["topic"]], **topics) as follower:
        wait_until(lambda: follower.poll(0.2) or follower.state.settled, what="the group joined")
        record = plan_for(follower, names["topic"])
        put(secured.open_servers, names["control"], record)

        def said() -> bool:
            follower.poll(0.1)
            return any(problem.format(**names) in one.getMessage() for one in caplog.records)

        if missing:
            wait_until(said, what="what is missing in the log")
        else:
            wait_until(
                lambda: (
                    follower.poll(0.1)
                    or any(isinstance(ack, Applied) for ack in read_acks(secured.open_servers, names["acks"]))
                ),
                what="the plan applied",
            )
        wait_until(lambda: consumed(follower, secured, names["topic"]), what="a record")
        follower.commit(asynchronous=False)


def put(servers: str, topic: str, record: ControlRecord) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce(
        topic, key=key_of(record), value=control.encode(record), headers=control.headers(record.epoch)
    )
    assert producer.flush(10) == 0
