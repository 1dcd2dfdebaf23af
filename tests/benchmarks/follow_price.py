"""What following costs a consumer: each record that `poll` and `consume` of confluent-kafka give it; threads and memory.

Pairs of a plain consumer and a follower, alone in their groups, read the same records in turns, now the one first, now the
other; what one fetches while the other reads is the same for both. A ratio is that of two neighbouring turns, which a busy
machine slows down alike. How far to trust them is what two plain consumers show. Processor time is that of the thread that
polls. No plan is in force, which is so nearly always; in the last state the follower has given one of its partitions away,
and the plain consumer has paused it. Threads and memory (RSS) are those of a process that does nothing else, with a topic of
few records: a follower that another one leads, and the one that leads.
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
Read = Callable[[Any, int], int]
"""Reads at least that many records, and returns how many."""

_TOPIC, _SMALL, _CONTROL, _ACKS = "price", "price-small", "price-control", "price-acks"
_PARTITIONS, _RECORDS = 4, 800_000
_PAIRS, _TURN = 6, 20_000
_AT_ONCE = 500
_HEADER = [
    *("call", "beside a plain consumer", "turns"),
    *("plain µs", "other µs", "ratio (quartiles)"),
    *("processor: plain µs", "other µs", "ratio (quartiles)"),
    "ratio of the least disturbed tenths",
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
    """Microseconds of each record by call: medians of the turns, and their ratios."""
    records, pairs = (240_000, 2) if quick else (_RECORDS, _PAIRS)
    with small_broker() as broker:
        servers = broker.bootstrap_servers
        create_offsets_topic(servers)
        create_topics(servers, {_TOPIC: _PARTITIONS, _SMALL: 2, _CONTROL: 1, _ACKS: 1})
        for _ in range(0, records // _PARTITIONS, 10_000):
            produce(servers, _TOPIC, dict.fromkeys(range(_PARTITIONS), 10_000))
        produce(servers, _SMALL, {0: 10, 1: 10})
        rows = []
        for call, read in _CALLS.items():
            for state, (other, gives) in _STATES.items():
                left = records * (_PARTITIONS - gives) // _PARTITIONS
                # Some are read before the first turn.
                turns = _turns(servers, read, other, gives=gives, turns=left // _TURN - 1, pairs=pairs)
                rows.append([call, state, *_row(turns)])
                say(str(rows[-1]))
        processes = [_processes(servers, client) for client in _CLIENTS]
    return {"tables": [{"header": _HEADER, "rows": rows}, {"header": _PROCESS, "rows": processes}]}


_numbers = count()


def _turns(
    servers: str, read: Read, other: Callable[[str, bool], Any], *, gives: bool, turns: int, pairs: int
) -> list[tuple[_Cost, _Cost]]:
    """Costs of the plain consumer and of the other one, turn by turn."""
    found = []
    for _ in range(pairs):
        with closing(_plain(servers, gives)) as plain, closing(other(servers, gives)) as beside:
            for turn in range(turns):
                first, second = (plain, beside) if turn % 2 else (beside, plain)
                costs = [_cost(first, read), _cost(second, read)]
                if first is beside:
                    costs.reverse()
                # The first turn warms up.
                if turn > 0:
                    found.append((costs[0], costs[1]))
    return found


def _row(turns: list[tuple[_Cost, _Cost]]) -> list[int | float | str]:
    row: list[int | float | str] = [len(turns)]
    for name in _Cost._fields:
        plain, other = ([getattr(pair[side], name) for pair in turns] for side in (0, 1))
        low, median, high = statistics.quantiles(
            (mine / its for its, mine in zip(plain, other, strict=True)), n=4
        )
        row += [round(statistics.median(plain), 3), round(statistics.median(other), 3)]
        row.append(f"{median:.3f} ({low:.3f}, {high:.3f})")
    least, least_of_other = (
        statistics.quantiles((pair[side].cpu_us for pair in turns), n=10)[0] for side in (0, 1)
    )
    return [*row, round(least_of_other / least, 3)]


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


def _cost(client: Any, read: Read) -> _Cost:
    cpu_s, wall_s = time.thread_time(), time.perf_counter()
    records = read(client, _TURN)
    return _Cost(1e6 * (time.perf_counter() - wall_s) / records, 1e6 * (time.thread_time() - cpu_s) / records)


def _poll(client: Any, records: int) -> int:
    left = records
    while left > 0:
        message = client.poll(1.0)
        left -= message is not None
    return records


def _consume(client: Any, records: int) -> int:
    left = records
    while left > 0:
        left -= len(client.consume(_AT_ONCE, 0.05))
    return records - left


_CALLS: dict[str, Read] = {"poll": _poll, f"consume({_AT_ONCE})": _consume}
_STATES = {
    "another plain one": (_plain, False),
    "a follower, no plan": (_following, False),
    "a follower that has given away one of 4 partitions": (_following, True),
}
