"""What a driver costs that has little to do: `lagwise run` as its defaults have it, over 30 small groups.

Some commits every ten seconds, of groups that keep up. The driver is watched once its JVM has compiled what it uses;
memory is counted for all its processes, with what they share divided among them (PSS).
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks import processes
from tests.benchmarks.driver_process import batches, driver_process
from tests.benchmarks.load import Load, traffic
from tests.support.brokers.broker import create_offsets_topic, small_broker

Say = Callable[[str], None]

_OFFSETS_PARTITIONS = 50
_SETTLED_AFTER_S = 180.0
_WATCHED_S = 180.0
_HEADER = ["groups", "rows", "batches", "processor s a minute", "memory MiB (PSS)", "processes"]
_PROCESSES = ["process", "processor s a minute", "memory MiB (PSS)"]


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Processor seconds a minute, memory and number of processes; the goal is 1.5 GB at most."""
    settled_s, watched_s = (60.0, 60.0) if quick else (_SETTLED_AFTER_S, _WATCHED_S)
    with (
        tempfile.TemporaryDirectory(prefix="lagwise-idle-") as folder,
        small_broker(offsets_topic_num_partitions=str(_OFFSETS_PARTITIONS)) as broker,
    ):
        create_offsets_topic(broker.bootstrap_servers)
        load = Load(
            bootstrap=broker.bootstrap_servers,
            groups=30,
            topics=1,
            partitions=10,
            offsets_partitions=_OFFSETS_PARTITIONS,
            committed=1.0,
        )
        load.prepare()
        with driver_process(broker.bootstrap_servers, Path(folder)) as (pid, log), traffic(load):
            time.sleep(settled_s)
            before_them, begun_s, before = batches(log), time.monotonic(), processes.each(pid)
            time.sleep(watched_s)
            done, minutes = batches(log) - before_them, (time.monotonic() - begun_s) / 60
            after = processes.each(pid)
            say(log.read_text(encoding="utf-8").rstrip().rpartition("\n")[2])
    used_s = {pid: (one.cpu_s - _cpu_s(before, pid)) / minutes for pid, one in after.items()}
    by_process = [
        [one.name, round(used_s[pid], 2), one.pss_mib]
        for pid, one in sorted(after.items(), key=lambda item: -item[1].pss_mib)
    ]
    memory_mib = sum(one.pss_mib for one in after.values())
    row = [load.groups, load.rows, done, round(sum(used_s.values()), 2), memory_mib, len(after)]
    say(", ".join(f"{what}: {value}" for what, value in zip(_HEADER, row, strict=True)))
    return {"tables": [{"header": _HEADER, "rows": [row]}, {"header": _PROCESSES, "rows": by_process}]}


def _cpu_s(before: dict[int, processes.Share], pid: int) -> float:
    return before[pid].cpu_s if pid in before else 0.0
