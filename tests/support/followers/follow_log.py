"""Options of one of the consumer `Processes`, and the lines that it writes for the judge."""

import json
import logging
import os
import sys
import time
from typing import Any

from confluent_kafka import TopicPartition

OPTIONS: dict[str, Any] = json.loads(sys.argv[1])
_LOG = os.open(OPTIONS["log"], os.O_WRONLY | os.O_APPEND)


def note(what: str, **more: Any) -> None:
    """Append a line; any thread may."""
    line = {"at": time.monotonic(), "who": OPTIONS["who"], "what": what, **more}
    os.write(_LOG, (json.dumps(line) + "\n").encode())


def numbers(partitions: list[TopicPartition]) -> list[int]:
    """Partition numbers; a process reads one topic."""
    return [partition.partition for partition in partitions]


class Noting(logging.Handler):
    """Writes what the follower logs into the lines for the judge."""

    def emit(self, record: logging.LogRecord) -> None:
        note("log", level=record.levelname, text=record.getMessage())
