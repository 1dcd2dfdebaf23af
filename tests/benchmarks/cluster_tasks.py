"""What the tasks of a run worked, job by job, from Spark's event log."""

import json
import re
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADER = ["job", "tasks", "their work s", "longest s", "job s"]
_DESCRIPTION = re.compile(r"batch (\d+) · (.*)")


@dataclass(slots=True)
class Job:
    """One job of one batch."""

    batch_id: int
    name: str
    begun_ms: int
    ended_ms: int = 0
    run_ms: list[int] = field(default_factory=list)
    """Of each task."""
    tasks_begun_ms: int = 0
    tasks_ended_ms: int = 0


def jobs_in(events: Iterable[str]) -> Iterator[Job]:
    """The jobs of batches in the lines of an event log, with the time that their tasks ran on executors."""
    by_stage: dict[int, Job] = {}
    by_job: dict[int, Job] = {}
    for line in events:
        event: dict[str, Any] = json.loads(line)
        match event["Event"]:
            case "SparkListenerJobStart":
                found = _DESCRIPTION.fullmatch(event["Properties"].get("spark.job.description", ""))
                if found:
                    job = Job(int(found[1]), found[2], event["Submission Time"])
                    by_job[event["Job ID"]] = job
                    by_stage |= dict.fromkeys(event["Stage IDs"], job)
            case "SparkListenerTaskEnd" if event["Stage ID"] in by_stage and event.get("Task Metrics"):
                job, info = by_stage[event["Stage ID"]], event["Task Info"]
                job.run_ms.append(event["Task Metrics"]["Executor Run Time"])
                job.tasks_begun_ms = min(job.tasks_begun_ms or info["Launch Time"], info["Launch Time"])
                job.tasks_ended_ms = max(job.tasks_ended_ms, info["Finish Time"])
            case "SparkListenerJobEnd" if event["Job ID"] in by_job:
                by_job[event["Job ID"]].ended_ms = event["Completion Time"]
    yield from by_job.values()


def jobs_of(folder: Path, batches: Collection[int]) -> list[Job]:
    """The jobs of these batches, from the event log in the folder."""
    (events,) = (path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    found = jobs_in(events.read_text(encoding="utf-8").splitlines())
    return [job for job in found if job.batch_id in batches]


def rows_of(jobs: Iterable[Job]) -> list[list[Any]]:
    """By job: the median over the batches of the columns of `HEADER`."""
    by_name: defaultdict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        by_name[job.name].append(job)
    return [
        [
            name,
            statistics.median(len(job.run_ms) for job in jobs),
            *(
                round(statistics.median(values) / 1000, 2)
                for values in (
                    [sum(job.run_ms) for job in jobs],
                    [max(job.run_ms, default=0) for job in jobs],
                    [job.ended_ms - job.begun_ms for job in jobs],
                )
            ),
        ]
        for name, jobs in by_name.items()
    ]
