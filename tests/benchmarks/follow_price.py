"""What following costs a consumer: each record that `poll` and `consume` of confluent-kafka give it; threads and memory.

Pairs of a plain consumer and a follower, alone in their groups, read the same records, one after the other, now the one
first, now the other. Processor time is that of the thread that polls. No plan is in force, which is so nearly always; in
the second state the follower has given one of its partitions away. Threads and memory (RSS) are those of a process that
does nothing else, with a topic of few records: a follower that another one leads, and the one that leads.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from assignor.clients.confluent import Follower
from tests.support.brokers.broker import create_offsets_topic, create_topics, produce, small_broker
from tests.support.waiting import wait_until

Say = Callable[[str], None]

_TOPIC, _SMALL, _CONTROL, _ACKS = "price", "price-small", "price-control", "price-acks"
_PARTITIONS, _RECORDS = 4, 400_000
_PAIRS = 9
_AT_ONCE = 500
_HEADER = [
    *("call", "follower", "pairs"),
    *(
        "plain µs",
        "following µs",
        "ratio of pairs (least, most)",
        "processor: plain µs",
        "following µs",
        "ratio",
    ),
]
_PROCESS = [
    "client",
    *(f"{what}: {how}" for what in ("threads", "MiB") for how in ("plain", "following", "leading")),
]
_CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka")
_PROCESSES = 3


class _Cost(NamedTuple):
    """Of one record."""

    wall_us: float
    cpu_us: float


def measure(say: Say, *, quick: bool) -> dict[str, Any]:
    """Microseconds of each record by call: medians, and the median of the ratios of pairs."""
    records, pairs = (40_000, 3) if quick else (_RECORDS, _PAIRS)
    with small_broker() as broker:
        servers = broker.bootstrap_servers
        create_offsets_topic(servers)
        create_topics(servers, {_TOPIC: _PARTITIONS, _SMALL: 2, _CONTROL: 1, _ACKS: 1})
        for _ in range(0, records // _PARTITIONS, 10_000):
            produce(servers, _TOPIC, dict.fromkeys(range(_PARTITIONS), 10_000))
        produce(servers, _SMALL, {0: 10, 1: 10})
        rows = []
        for call, read in _CALLS.items():
            for state, gives in (("no plan", False), ("one of 4 partitions given away", True)):
                rows.append([call, state, *_row(servers, read, gives=gives, records=records, pairs=pairs)])
                say(str(rows[-1]))
        processes = [_processes(servers, client) for client in _CLIENTS]
    return {"tables": [{"header": _HEADER, "rows": rows}, {"header": _PROCESS, "rows": processes}]}


_numbers = count()


def _row(
    servers: str, read: Callable[[Any, int], None], *, gives: bool, records: int, pairs: int
) -> list[int | float | str]:
    plain, following = [], []
    left = 3 * records // 5 if gives else records * 4 // 5
    for number in range(pairs + 1):
        order = ((_plain, plain), (_following, following))
        for make, costs in order if number % 2 else reversed(order):
            with closing(make(servers, gives)) as client:
                cost = _cost(client, read, left)
            # The first pair warms up.
            if number > 0:
                costs.append(cost)
    ratios = [f.wall_us / p.wall_us for p, f in zip(plain, following, strict=True)]
    of_cpu = [f.cpu_us / p.cpu_us for p, f in zip(plain, following, strict=True)]
    return [
        pairs,
        *_medians(plain, following, "wall_us"),
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f}, {max(ratios):.2f})",
        *_medians(plain, following, "cpu_us"),
        f"{statistics.median(of_cpu):.2f} ({min(of_cpu):.2f}, {max(of_cpu):.2f})",
    ]


def _processes(servers: str, client: str) -> list[Any]:
    kinds = [
        [_process(servers, client, follows=False) for _ in range(_PROCESSES)],
        *zip(*(_pair(servers, client) for _ in range(_PROCESSES)), strict=True),
    ]
    return [
        client,
        *(statistics.median(one["threads"] for one in some) for some in kinds),
        *(round(statistics.median(one["mib"] for one in some), 1) for some in kinds),
    ]


def _pair(servers: str, client: str) -> tuple[dict[str, float], dict[str, float]]:
    """A follower that joins the group of another one, and that one, which leads."""
    group = f"price-{next(_numbers)}"
    with subprocess.Popen(
        _words(servers, client, group, stays=True), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as leader:
        assert leader.stdin is not None
        assert leader.stdout is not None
        try:
            leads: dict[str, float] = json.loads(leader.stdout.readline())
            return _process(servers, client, group=group), leads
        finally:
            leader.stdin.close()


def _process(
    servers: str, client: str, *, group: str | None = None, follows: bool = True
) -> dict[str, float]:
    words = _words(servers, client, group or f"price-{next(_numbers)}", follows=follows)
    said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout
    found: dict[str, float] = json.loads(said)
    return found


def _words(servers: str, client: str, group: str, *, follows: bool = True, stays: bool = False) -> list[str]:
    options = {"servers": servers, "client": client, "group": group, "follows": follows, "stays": stays}
    topics = {"topic": _SMALL, "control": _CONTROL, "acks": _ACKS, "cluster": "price"}
    return [sys.executable, "-m", "tests.benchmarks.follow_price_process", json.dumps(options | topics)]


def _medians(plain: list[_Cost], following: list[_Cost], name: str) -> list[float]:
    return [
        round(statistics.median(getattr(cost, name) for cost in costs), 2) for costs in (plain, following)
    ]


def _config(servers: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "group.id": f"price-{next(_numbers)}",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }


def _plain(servers: str, gives: bool) -> Consumer:
    consumer = Consumer(_config(servers))
    consumer.subscribe([_TOPIC])
    wait_until(lambda: consumer.poll(0.5), what="a first record")
    if gives:
        consumer.pause([TopicPartition(_TOPIC, 0)])
    return consumer


def _following(servers: str, gives: bool) -> Follower:
    follower = Follower(_config(servers), [_TOPIC], control_topic=_CONTROL, acks_topic=_ACKS)
    wait_until(lambda: follower.poll(0.5), what="a first record")
    if gives:
        follower._reading.assign({(_TOPIC, number) for number in range(1, _PARTITIONS)}, {})
    return follower


def _cost(client: Any, read: Callable[[Any, int], None], records: int) -> _Cost:
    cpu_s, wall_s = time.thread_time(), time.perf_counter()
    read(client, records)
    return _Cost(1e6 * (time.perf_counter() - wall_s) / records, 1e6 * (time.thread_time() - cpu_s) / records)


def _poll(client: Any, records: int) -> None:
    left = records
    while left > 0:
        message = client.poll(1.0)
        left -= message is not None


def _consume(client: Any, records: int) -> None:
    left = records
    while left > 0:
        left -= len(client.consume(_AT_ONCE, 0.05))


_CALLS: dict[str, Callable[[Any, int], None]] = {"poll": _poll, f"consume({_AT_ONCE})": _consume}
