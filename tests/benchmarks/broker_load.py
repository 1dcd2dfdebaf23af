"""What a driver asks of its brokers: requests a minute by kind, and bytes, counted by the broker itself.

The same traffic goes on with and without the driver, and the difference is the driver's. Commits come by records that
are put into the offsets topic, so what the broker sends of that topic is what the driver reads. Coordinators do not know
these groups: what `source.offsets = "admin"` asks of them is not measured.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.broker_counts import Counts, counts, start_counted
from tests.benchmarks.driver_process import batches, driver_process
from tests.benchmarks.load import Load, steady_traffic
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_OFFSETS_PARTITIONS = 50
_SETTLED_AFTER = 4
"""Batches."""
_WATCHED_S = 120.0
_LEAST_A_MINUTE = 0.3
_NOT_COUNTED = {
    # Kafka counts what consumers fetch once more, as FetchConsumer.
    "Fetch",
    # Of the traffic, which never takes quite the same: plans are dry runs by default, so the driver produces nothing.
    "Produce",
    # Of the broker itself.
    "BrokerHeartbeat",
}
_HEADER = [
    "groups",
    "partitions",
    "requests a minute",
    "by kind",
    "bytes a minute",
]


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster of one broker."""

    groups: int
    partitions: int
    """All groups read the same ones."""

    def measure(self, *, watched_s: float) -> list[Any]:
        """A row of the table."""
        with (
            tempfile.TemporaryDirectory(prefix="lagwise-load-") as folder,
            closing(small_broker(offsets_topic_num_partitions=str(_OFFSETS_PARTITIONS))) as broker,
        ):
            port = start_counted(broker)
            create_offsets_topic(broker.bootstrap_servers)
            load = Load(
                bootstrap=broker.bootstrap_servers,
                groups=self.groups,
                topics=1,
                partitions=self.partitions,
                offsets_partitions=_OFFSETS_PARTITIONS,
                committed=0.01,
            )
            load.prepare()
            with steady_traffic(load):
                without = _watched(port, watched_s)
                with driver_process(broker.bootstrap_servers, Path(folder)) as (_, log):
                    wait_until(lambda: batches(log) >= _SETTLED_AFTER, what="its first batches", within_s=300)
                    with_driver = _watched(port, watched_s)
        return self._row(with_driver, without, minutes=watched_s / 60)

    def _row(self, with_driver: Counts, without: Counts, *, minutes: float) -> list[Any]:
        more = with_driver.since(without)
        a_minute = {
            name: count / minutes
            for name, count in more.requests.most_common()
            # One that comes once in a few minutes may be of either side.
            if name not in _NOT_COUNTED and count / minutes >= _LEAST_A_MINUTE
        }
        return [
            *(self.groups, self.partitions),
            round(sum(a_minute.values())),
            ", ".join(f"{name} {count:.1f}" for name, count in a_minute.items()),
            round(sum(more.bytes_out.values()) / minutes),
        ]


_CASES = (Case(30, 10), Case(100, 100))


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Requests a minute by kind, and bytes a minute, in steady state."""
    rows = []
    for case in _CASES[:1] if quick else _CASES:
        rows.append(case.measure(watched_s=_WATCHED_S))
        say(", ".join(f"{what}: {value}" for what, value in zip(_HEADER, rows[-1], strict=True)))
    return {"tables": [{"header": _HEADER, "rows": rows}]}


def _watched(port: int, for_s: float) -> Counts:
    """What is counted in this time."""
    before = counts(port)
    time.sleep(for_s)
    return counts(port).since(before)
