"""What Spark's event log shows of a small run: the tasks of described jobs read, fold and decide, however little there is."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import create_offsets_topic, create_topics, produce, small_broker
from tests.support.brokers.inject import RawRecord, commit_record, inject
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import write_config
from tests.support.spark.event_log import event_log

REPOSITORY = Path(__file__).parents[2]
GROUPS, PARTITIONS, COMMITS = 5, 4, 200
_COUNTS = re.compile(r" batch batch_id=\d+ .* counts=(\{.*?\})")


@dataclass
class Shown:
    """What the event log of one run shows."""

    counted: Counter[str] = field(default_factory=Counter)
    """Records by kind, as the job's own lines count them."""
    tasks: dict[str, int] = field(default_factory=dict)
    """Tasks that have ended well, by description of their job without the batch."""
    rows_of_readers: int = 0
    rows_of_progress: int = 0
    spans: Counter[str] = field(default_factory=Counter)
    """Offsets between start and end of the batches, by topic."""


def shown(events: Path, lines: str) -> Shown:
    """The event log of a run, whose lines are given, too."""
    found, names = Shown(), dict[int, str]()
    for counts in _COUNTS.findall(lines):
        found.counted.update(json.loads(counts))
    for line in events.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        match event["Event"].rpartition(".")[2]:
            case "SparkListenerJobStart":
                described = event["Properties"]["spark.job.description"]
                name = described.partition(" · ")[2] or described
                names |= dict.fromkeys(event["Stage IDs"], re.sub(r"\d+", "N", name))
                found.tasks.setdefault(names[event["Stage IDs"][0]], 0)
            case "SparkListenerTaskEnd" if event["Task End Reason"]["Reason"] == "Success":
                found.tasks[names[event["Stage ID"]]] += 1
                if names[event["Stage ID"]] == "read":
                    found.rows_of_readers += event["Task Metrics"]["Input Metrics"]["Records Read"]
            case "StreamingQueryListener$QueryProgressEvent":
                _progressed(found, event["progress"])
    return found


def _progressed(found: Shown, progress: Mapping[str, Any]) -> None:
    (source,) = progress["sources"]
    found.rows_of_progress += source["numInputRows"]
    if "addBatch" in progress["durationMs"]:
        for topic, logs in json.loads(source["endOffset"])["logs"].items():
            found.spans[topic] += sum(log["to"] - log["from"] for log in logs.values() if "to" in log)


def commits(*, groups: int, count: int, offset: int) -> Iterator[RawRecord]:
    for number in range(count):
        yield commit_record(f"g{number % groups}", "t", number // groups % PARTITIONS, offset)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with small_broker() as made:
        create_offsets_topic(made.bootstrap_servers)
        create_topics(made.bootstrap_servers, {"t": PARTITIONS})
        produce(made.bootstrap_servers, "t", dict.fromkeys(range(PARTITIONS), 50))
        yield made


@pytest.fixture(scope="module")
def first(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shown, Path]:
    """A run over the commits of five groups, and its folder."""
    place = tmp_path_factory.mktemp("shown")
    groups = [
        group_record(f"g{number}", member("m", "t", assigned={"t": tuple(range(PARTITIONS))}))
        for number in range(GROUPS)
    ]
    inject(broker.bootstrap_servers, [*groups, *commits(groups=GROUPS, count=COMMITS, offset=7)])
    return run_once(broker.bootstrap_servers, place), place


def run_once(bootstrap: str, place: Path) -> Shown:
    """A run of its own process on the tables of this place."""
    events = place / "events"
    events.mkdir(exist_ok=True)
    before = {*events.iterdir()}
    file = place / "lagwise.toml"
    write_config(file, bootstrap, place / "tables")
    with file.open("a", encoding="utf-8") as config:
        config.write("\n[spark]\n" + event_log(events))
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.run.main", "--config", str(file), "--once"],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (made,) = (one for one in events.iterdir() if one not in before and not one.name.startswith("."))
    return shown(made, done.stdout + done.stderr)


def test_tasks_of_described_jobs_read_fold_and_decide(first: tuple[Shown, Path]) -> None:
    assert first[0].tasks.keys() == {
        "start the Python of tasks",
        "read",
        "fold topic_offsets",
        "fold partition_lag",
        "fold lag_history",
        "decide N groups",
    }
    assert all(first[0].tasks.values())


def test_readers_count_every_record_of_the_spans(first: tuple[Shown, Path]) -> None:
    assert first[0].counted == {"commit": COMMITS, "group": GROUPS}
    assert first[0].spans["__consumer_offsets"] == COMMITS + GROUPS


def test_progress_counts_the_rows_that_readers_gave(first: tuple[Shown, Path]) -> None:
    # Of several commits of a partition one is left.
    assert first[0].rows_of_progress == first[0].rows_of_readers >= GROUPS * PARTITIONS + GROUPS


def test_one_commit_is_read_and_folded_by_tasks_too(
    broker: EmbeddedBroker, first: tuple[Shown, Path]
) -> None:
    inject(broker.bootstrap_servers, commits(groups=1, count=1, offset=9))

    second = run_once(broker.bootstrap_servers, first[1])

    assert second.counted == {"commit": 1}
    assert second.spans["__consumer_offsets"] == 1
    assert all(second.tasks[job] for job in ("read", "fold topic_offsets", "fold partition_lag"))
    assert second.rows_of_progress == second.rows_of_readers >= 1
