"""From the command to the first complete `partition_lag`, JVM and all: `lagwise run` as its defaults have it, over a full topic.

All commits are there before: 1,000,000 partitions of groups, once, and ten times.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from pipeline.errors import StoreError
from pipeline.tables.reading import Tables
from tests.benchmarks import processes
from tests.benchmarks.driver_process import driver_process
from tests.benchmarks.load import Load
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_OFFSETS_PARTITIONS = 50
_WITHIN_S = 900.0
_HEADER = ["commits", "rows", "complete after s", "processor s", "memory MiB (PSS)"]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Seconds by number of commits; the goals are 20 for a million and 60 for ten."""
    rows = [
        _started(say, groups=groups, rounds=rounds)
        for groups, rounds in ([(100, 1)] if quick else [(1000, 1), (1000, 10)])
    ]
    return {"tables": [{"header": _HEADER, "rows": rows}]}


def _started(say: Say, *, groups: int, rounds: int) -> list[Any]:
    with (
        tempfile.TemporaryDirectory(prefix="lagwise-start-") as folder,
        small_broker(offsets_topic_num_partitions=str(_OFFSETS_PARTITIONS)) as broker,
    ):
        create_offsets_topic(broker.bootstrap_servers)
        load = Load(
            bootstrap=broker.bootstrap_servers,
            groups=groups,
            topics=1,
            partitions=1000,
            offsets_partitions=_OFFSETS_PARTITIONS,
        )
        load.prepare()
        for _ in range(rounds - 1):
            load.commit_all()
        say(f"{load.rows * rounds} commits of {load.rows} rows: in the broker")
        begun_s = time.monotonic()
        with driver_process(broker.bootstrap_servers, Path(folder)) as (pid, _log):
            tables = Tables(f"{folder}/tables")
            wait_until(lambda: _is_complete(tables, load.rows), what="all rows", within_s=_WITHIN_S)
            seconds = time.monotonic() - begun_s
            used = processes.each(pid).values()
            row = [load.rows * rounds, load.rows, round(seconds, 1)]
            row += [round(sum(one.cpu_s for one in used), 1), sum(one.pss_mib for one in used)]
    say(", ".join(f"{what}: {value}" for what, value in zip(_HEADER, row, strict=True)))
    return row


def _is_complete(tables: Tables, rows: int) -> bool:
    try:
        return tables.dataset("partition_lag").count_rows(filter=~pc.field("provisional")) == rows
    except StoreError:
        # Not made yet.
        return False
