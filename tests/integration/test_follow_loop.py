"""The loop closed: the job plans, real followers take it over, and the job sees what became of it.

On a cluster with TLS, SASL and ACLs, where each party has the rights that its documentation lists, and no other.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from typer.testing import CliRunner

from assignor.protocol.ranges import parse_ranges
from pipeline.config.model import ControlConfig, KafkaConfig
from pipeline.operate.cli.app import app
from tests.support.brokers.secured import Right, Secured
from tests.support.followers.follow_processes import Processes
from tests.support.job.job import NO_GUARDS, RunningJob, eager_plan, job_config, running
from tests.support.operate.page_rights import rights_of

COMMANDS, OTHER_ACKS = "loop-commands", "loop-other-acks"
_MOST_TRIES = 12
CREATE, DESCRIBE, READ, WRITE = (
    AclOperation.CREATE,
    AclOperation.DESCRIBE,
    AclOperation.READ,
    AclOperation.WRITE,
)
TOPIC, GROUP, TRANSACTION = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
# Kafka's code of the cluster as a resource, which this client calls a broker.
CLUSTER = ResourceType.BROKER


def rights_of_job(processes: Processes) -> list[Right]:
    """deploying-security.md, "What each right is for": what is needed, and the optional one without which followers refuse plans."""
    return [
        *(
            (READ, TOPIC, name)
            for name in ("__consumer_offsets", processes.control, processes.acks, OTHER_ACKS, COMMANDS)
        ),
        (DESCRIBE, TOPIC, processes.topic),
        *((CREATE, TOPIC, name) for name in (processes.control, processes.acks, OTHER_ACKS, COMMANDS)),
        (WRITE, TOPIC, processes.control),
        (WRITE, TRANSACTION, "lagwise-*"),
        (DESCRIBE, GROUP, "lagwise-*"),
        (AclOperation.DESCRIBE_CONFIGS, CLUSTER, "kafka-cluster"),
    ]


def rights_of_follower(processes: Processes) -> list[Right]:
    """deploy/docs/deploying-security.md, by its own lines."""
    return rights_of(
        "billing",
        {
            "billing": processes.group,
            "invoices": processes.topic,
            "lagwise.assignments": processes.control,
            "lagwise.acks": processes.acks,
        },
    )


def rights_of_operator(processes: Processes) -> list[Right]:
    """deploy/docs/runbook.md, "Orders"."""
    return [
        *((operation, TOPIC, COMMANDS) for operation in (READ, WRITE, DESCRIBE)),
        (WRITE, TRANSACTION, f"lagwise-{processes.cluster}:orders"),
        (READ, GROUP, "lagwise-orders"),
        (DESCRIBE, GROUP, processes.group),
    ]


@pytest.fixture
def processes(secured: Secured, tmp_path: Path) -> Iterator[Processes]:
    with Processes(secured.open_servers, "loop", tmp_path, config=secured.properties("loop-member")) as made:
        for user, rights in (
            ("loop-member", rights_of_follower(made)),
            ("loop-job", rights_of_job(made)),
            ("loop-operator", rights_of_operator(made)),
        ):
            secured.add_user(user)
            secured.allow(user, *rights)
        for who in "ab":
            made.start(who)
        made.base(2)
        yield made


@pytest.fixture
def order(processes: Processes, secured: Secured, tmp_path: Path) -> Callable[..., None]:
    """An operator's command about the group."""
    file = tmp_path / "lagwise.toml"
    settings = secured.settings("loop-operator").items()
    lines = "\n".join(f'"{name}" = "{value}"' for name, value in settings)
    text = f'[kafka.properties]\n{lines}\n[control]\ncommands_topic = "{COMMANDS}"\n'
    file.write_text(text, encoding="utf-8")

    def give(word: str, *more: str) -> None:
        done = CliRunner().invoke(app, [word, processes.group, *more, "--config", str(file)])
        assert (done.exit_code, done.stderr) == (0, ""), done.output

    return give


def test_job_sees_its_plan_applied_and_obeys_its_operator(
    processes: Processes, secured: Secured, order: Callable[..., None], tmp_path: Path
) -> None:
    # With this pause there is one plan, unless somebody asks for another.
    guards = NO_GUARDS.model_copy(update={"cooldown_s": 3600, "cooldown_max_s": 3600})
    config = job_config(
        secured.servers,
        tmp_path / "tables",
        kafka=KafkaConfig(properties=secured.settings("loop-job")),
        plan=eager_plan(dry_run=False, guards=guards),
        control=ControlConfig(
            topic=processes.control,
            acks_topic=OTHER_ACKS,
            acks_topics={processes.group: processes.acks},
            commands_topic=COMMANDS,
        ),
    )
    with running(config) as job:
        for _ in range(_MOST_TRIES):
            job.wait(lambda: _plan(job, processes.group).get("status") == "applied", what="the plan applied")
            first = _published(job, processes.group)[-1]
            applied = job.last_decision(processes.group)
            owners = {place: row["member_id"] for place, row in job.lags(processes.group).items()}

            processes.start("c")
            generation, *_ = processes.base(3)
            processes.leave("c")
            processes.base(2, after=generation)
            is_again = partial(_is_again, job, processes.group, first)
            job.wait(
                lambda is_again=is_again: is_again() or _is_dropped(job, processes.group),
                what="the plan again, for those who are left, or that it helps no longer",
            )
            if is_again():
                break
            # Members that keep up have hardly any lag, and by chance the target helps no longer by its own figures.
            order("trigger")
            job.wait(
                partial(_is_decided_since, job, processes.group, _decided_at(job, processes.group)),
                what="an answer",
            )
            # Where the target is what they have by chance, there is nothing to move, and all begins again.
            if is_again():
                break
        again = _published(job, processes.group)[-1]
        job.wait(lambda: _plan(job, processes.group)["status"] == "applied", what="the plan applied again")

        # One that finds nothing to move, as by chance it may be, is answered with that.
        for _ in range(_MOST_TRIES):
            order("trigger")
            job.wait(
                partial(_is_decided_since, job, processes.group, _decided_at(job, processes.group)),
                what="an answer",
            )
            if _published(job, processes.group)[-1]["epoch"] > again["epoch"]:
                break
        assert _published(job, processes.group)[-1]["epoch"] > again["epoch"], job.last_decision(
            processes.group
        )

        order("pause", "--reason", "deploy")
        job.wait(lambda: job.last_decision(processes.group)["decision"] == "abstain", what="the pause")
        paused = job.last_decision(processes.group)
        processes.finish()

    assert owners == _by_place(first)
    assert (applied["plan"]["epoch"], applied["plan"]["moves_made"]) == (first["epoch"], len(first["moves"]))
    assert applied["plan"]["status_at"] > first["created_at"]
    assert again["assignment"] == first["assignment"]
    assert again["base_generation"] > generation
    assert ": deploy; `lagwise resume" in paused["reason"]
    assert not any(secured.password_file.read_text() in line for line in job.messages)
    assert processes.missing() == []
    assert processes.overlaps() == []


def _is_again(job: RunningJob, group: str, first: dict[str, Any]) -> bool:
    return int(_plan(job, group).get("epoch", 0)) > int(first["epoch"])


def _decided_at(job: RunningJob, group: str) -> Any:
    return job.last_decision(group)["updated_at"]


def _is_decided_since(job: RunningJob, group: str, at: Any) -> bool:
    return bool(_decided_at(job, group) > at)


def _is_dropped(job: RunningJob, group: str) -> bool:
    rows = [row for row in job.rows("plan_state") if row["group_id"] == group]
    return any(json.loads(row["state"])["plan"]["is_dropped"] for row in rows)


def _plan(job: RunningJob, group: str) -> dict[str, Any]:
    rows = [row for row in job.rows("plan_state") if row["group_id"] == group]
    return rows[0]["plan"] or {} if rows else {}


def _published(job: RunningJob, group: str) -> list[dict[str, Any]]:
    rows = [r for r in job.rows("recommendations") if (r["group_id"], r["decision"]) == (group, "publish")]
    return sorted((row for row in rows if row["moves"]), key=lambda row: row["epoch"])


def _by_place(row: dict[str, Any]) -> dict[tuple[str, int], str]:
    return {
        (topic, number): member
        for member, topics in row["assignment"]
        for topic, ranges in topics
        for number in parse_ranges(ranges, at_most=100)
    }
