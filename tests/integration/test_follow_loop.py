"""The loop closed: the job plans, real followers take it over, and the job sees what became of it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from assignor.protocol import commands
from assignor.protocol.commands import Orders
from assignor.protocol.ranges import parse_ranges
from pipeline.config_model import ControlConfig
from pipeline.embedded import EmbeddedBroker
from tests.support.follow_crew import Crew
from tests.support.job import NO_GUARDS, RunningJob, eager_plan, job_config, running

COMMANDS = "loop-commands"


@pytest.fixture
def crew(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Crew]:
    with Crew(broker.bootstrap_servers, "loop", tmp_path) as made:
        for who in "ab":
            made.start(who)
        made.base(2)
        yield made


def test_job_sees_its_plan_applied_and_obeys_its_operator(crew: Crew, tmp_path: Path) -> None:
    # With this pause there is one plan, unless somebody asks for another.
    guards = NO_GUARDS.model_copy(update={"cooldown_s": 3600, "cooldown_max_s": 3600})
    config = job_config(
        crew.bootstrap,
        tmp_path / "tables",
        plan=eager_plan(dry_run=False, guards=guards),
        control=ControlConfig(topic=crew.control, acks_topic=crew.acks, commands_topic=COMMANDS),
    )
    with running(config) as job:
        job.wait(lambda: _plan(job, crew.group).get("status") == "applied", what="the plan applied")
        first = _published(job, crew.group)[0]
        applied = job.last_decision(crew.group)
        owners = {place: row["member_id"] for place, row in job.lags(crew.group).items()}

        crew.start("c")
        generation, *_ = crew.base(3)
        crew.leave("c")
        crew.base(2, after=generation)
        job.wait(
            lambda: _plan(job, crew.group).get("epoch") == 2, what="the plan again, for those who are left"
        )
        job.wait(lambda: _plan(job, crew.group)["status"] == "applied", what="the plan applied again")

        _order(crew, triggered_at_ms=_now_ms())
        job.wait(lambda: len(_published(job, crew.group)) > 2, what="a plan that was asked for")
        again = _published(job, crew.group)[1]

        _order(crew, paused=True, pause_reason="deploy")
        job.wait(lambda: job.last_decision(crew.group)["decision"] == "abstain", what="the pause")
        paused = job.last_decision(crew.group)
        crew.finish()

    assert owners == _by_place(first)
    assert (applied["plan"]["epoch"], applied["plan"]["moves_made"]) == (1, len(first["moves"]))
    assert applied["plan"]["status_at"] > first["created_at"]
    assert again["assignment"] == first["assignment"]
    assert again["base_generation"] > generation
    assert paused["reason"].startswith("paused by eva@desk: deploy")
    assert crew.missing() == []
    assert crew.overlaps() == []


def _plan(job: RunningJob, group: str) -> dict[str, Any]:
    rows = [row for row in job.rows("recommendations") if row["group_id"] == group]
    return max(rows, key=lambda row: row["created_at"])["plan"] or {} if rows else {}


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


def _order(crew: Crew, **orders: Any) -> None:
    given = Orders(cluster=crew.cluster, group=crew.group, at_ms=_now_ms(), by="eva@desk", **orders)
    producer = Producer({"bootstrap.servers": crew.bootstrap, "log_level": 0})
    producer.produce(COMMANDS, key=commands.encode_key(given), value=commands.encode(given))
    assert producer.flush(10) == 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
