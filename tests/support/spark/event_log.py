"""Spark's event log as tests read it: one plain file for each application."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LINES = """\
"spark.eventLog.enabled" = "true"
"spark.eventLog.compress" = "false"
"spark.eventLog.rolling.enabled" = "false"
"spark.eventLog.dir" = "{folder}"
"""
_COUNTS = re.compile(r" batch batch_id=\d+ .* counts=(\{.*?\})")


def event_log(folder: Path) -> str:
    """Lines of TOML, below `[spark]`, that have it written to the folder."""
    return _LINES.format(folder=folder.as_uri())


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
