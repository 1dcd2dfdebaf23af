"""`--once`: everything that is in the offsets topic, one plan, an end; by spark-submit, then by the command.

And what Spark's event log shows of it: the tasks of described jobs read, fold and decide, however little there is.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.config.model import Config, StartConfig
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import (
    OFFSETS_PARTITIONS,
    create_offsets_topic,
    create_topics,
    produce,
    small_broker,
)
from tests.support.brokers.inject import RawRecord, commit_record, inject, open_transaction
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import Row, RunningJob, job_config, read_table, write_config
from tests.support.spark.event_log import Shown, event_log, shown

REPOSITORY = Path(__file__).parents[2]
BY_SUBMIT, BY_COMMAND = (
    [str(REPOSITORY / "deploy" / "submit.sh")],
    [sys.executable, "-m", "pipeline.run.main"],
)
TOPIC, GROUPS, PARTITIONS, ROUNDS, END = "once", 12, 4, 5, 30
NAMES = [f"g{number}" for number in range(GROUPS)]
LATER = 25
"""The commit of the first group between the two runs."""
SECRET = "mark-7f3a-of-a-secret"  # noqa: S105 - it opens nothing
_OF_KAFKA = """
[kafka.properties]
"ssl.key.password" = "env:LAGWISE_TEST_SECRET"
"debug" = "conf"
"""
_OF_SPARK = """
[spark]
"spark.hadoop.fs.s3a.secret.key" = "env:LAGWISE_TEST_SECRET"
"""
Commits = Mapping[tuple[str, int], int]
"""By group and partition."""


class Ended(NamedTuple):
    """A run, and what it left."""

    done: subprocess.CompletedProcess[str]
    events: Shown
    rows: list[Row]
    state: list[Row]
    """The newest decision about each group."""
    decisions: list[Row]
    """Those of this run that differ from the one before."""
    commits: Commits
    """As the run has found them."""
    moved: set[str]
    """Groups with commits since the run before."""


class Story(NamedTuple):
    """A run over groups with lag, and one over a single commit more, with secrets in their configuration."""

    config: Config
    runs: Mapping[str, Ended]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with small_broker() as made:
        create_offsets_topic(made.bootstrap_servers)
        yield made


@pytest.fixture(scope="module")
def story(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Story:
    place, bootstrap = tmp_path_factory.mktemp("once"), broker.bootstrap_servers
    create_topics(bootstrap, {TOPIC: PARTITIONS})
    produce(bootstrap, TOPIC, dict.fromkeys(range(PARTITIONS), END))
    busy = member("busy", TOPIC, assigned={TOPIC: tuple(range(PARTITIONS))})
    inject(bootstrap, [*(group_record(name, busy, member("idle", TOPIC)) for name in NAMES), *_commits()])
    commits = {(name, p): number + ROUNDS for number, name in enumerate(NAMES) for p in range(PARTITIONS)}
    file = place / "lagwise.toml"
    (place / "events").mkdir()
    config = write_config(file, bootstrap, place / "tables")
    text = file.read_text(encoding="utf-8").replace("[kafka.properties]", _OF_KAFKA)
    file.write_text(text + _OF_SPARK + event_log(place / "events"), encoding="utf-8")
    first = _run(BY_SUBMIT, file, config, commits, moved={*NAMES}, so_far=0)
    inject(bootstrap, [commit_record(NAMES[0], TOPIC, 0, LATER)])
    commits = {**commits, (NAMES[0], 0): LATER}
    second = _run(BY_COMMAND, file, config, commits, moved={NAMES[0]}, so_far=len(first.decisions))
    return Story(config, {"spark-submit": first, "command": second})


@pytest.fixture(params=["spark-submit", "command"])
def ended(story: Story, request: pytest.FixtureRequest) -> Ended:
    return story.runs[request.param]


def test_once_reads_everything_plans_once_and_ends(ended: Ended) -> None:
    assert ended.done.returncode == 0, ended.done.stderr
    lags = {(row["group_id"], row["partition"]): row["lag"] for row in ended.rows}
    assert lags == {place: END - offset for place, offset in ended.commits.items()}
    assert not any(row["provisional"] for row in ended.rows)
    assert {row["group_id"]: row["decision"] for row in ended.state} == dict.fromkeys(NAMES, "dry_run")
    assert len({row["batch_id"] for row in ended.state}) == 1
    assert Counter(row["group_id"] for row in ended.decisions) == dict.fromkeys(ended.moved, 1)
    assert GROUPS > OFFSETS_PARTITIONS


def test_secret_is_in_no_line_table_or_checkpoint(story: Story, ended: Ended) -> None:
    assert ended.done.returncode == 0, ended.done.stderr
    assert SECRET not in ended.done.stdout + ended.done.stderr
    files = [file for file in Path(story.config.tables.root).rglob("*") if file.is_file()]
    assert any("_checkpoint" in file.parts for file in files)
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []


def test_first_run_writes_the_history_in_tasks(story: Story) -> None:
    assert "fold lag_history" in story.runs["spark-submit"].events.tasks


def test_tasks_of_described_jobs_read_fold_and_decide_however_little_there_is(ended: Ended) -> None:
    # History is written once a minute, and the second run may come before.
    assert ended.events.tasks.keys() | {"fold lag_history"} == {
        "start the Python of tasks",
        "read",
        "fold topic_offsets",
        "fold partition_lag",
        "fold lag_history",
        "decide N groups",
    }
    assert all(ended.events.tasks.values())


def test_readers_count_every_record_of_the_spans(story: Story) -> None:
    first, second = (story.runs[name].events for name in ("spark-submit", "command"))
    written = GROUPS * PARTITIONS * ROUNDS

    assert first.counted == {"commit": written, "group": GROUPS}
    assert first.spans["__consumer_offsets"] == written + GROUPS
    assert second.counted == {"commit": 1}
    assert second.spans["__consumer_offsets"] == 1


def test_progress_counts_the_rows_that_readers_gave(story: Story) -> None:
    first, second = (story.runs[name].events for name in ("spark-submit", "command"))

    # Of several commits of a partition one is left.
    assert first.rows_of_progress == first.rows_of_readers >= GROUPS * PARTITIONS + GROUPS
    assert second.rows_of_progress == second.rows_of_readers >= 1


def test_once_that_cannot_read_everything_in_time_says_why_and_plans_nothing(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    create_topics(bootstrap, {"once-late": 1})
    job = RunningJob(job_config(bootstrap, tmp_path, start=StartConfig(deadline_s=5)), once=True)

    with open_transaction(bootstrap, "never-ends", {("once-late", 0): 1}):
        job.start()
        job.join(120)

    assert job.failure is None
    assert job.is_incomplete
    assert any("an open transaction holds back" in line for line in job.messages)
    assert job.rows("plan_state") == job.rows("recommendations") == []


def _commits() -> Iterator[RawRecord]:
    """Each group commits each partition again and again; the last commit is told by the number of the group."""
    for done in range(1, ROUNDS + 1):
        for number, name in enumerate(NAMES):
            yield from (commit_record(name, TOPIC, p, number + done) for p in range(PARTITIONS))


def _run(
    command: list[str], file: Path, config: Config, commits: Commits, *, moved: set[str], so_far: int
) -> Ended:
    """One run, after so many decisions."""
    events = file.parent / "events"
    before = {*events.iterdir()}
    done = subprocess.run(
        [*command, "--config", str(file), "--once"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=file.parent,
        env=os.environ
        | {
            "PYTHONPATH": str(REPOSITORY),
            "PYSPARK_PYTHON": sys.executable,
            "LAGWISE_TEST_SECRET": SECRET,
        },
    )
    assert done.returncode == 0, done.stderr
    (made,) = (one for one in events.iterdir() if one not in before and not one.name.startswith("."))
    decisions = sorted(read_table(config, "recommendations"), key=lambda row: row["created_at"])
    return Ended(
        done,
        shown(made, done.stdout + done.stderr),
        read_table(config, "partition_lag"),
        read_table(config, "plan_state"),
        decisions[so_far:],
        commits,
        moved,
    )
