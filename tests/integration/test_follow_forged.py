"""Somebody who may write to the acks topic, and a group of live followers: no partition moves by what he writes."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import Producer

from assignor.protocol import acks as ack_records
from assignor.protocol.acks import AnyAck, Applied, Follows, Release, Taken
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.commits import marks_of, set_back
from tests.support.followers.follow_forger import KINDS, Replay, as_ack, at_random
from tests.support.followers.follow_plans import at_random as target_at_random
from tests.support.followers.follow_plans import one_moved
from tests.support.followers.follow_processes import Processes
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

MEMBERS = "abc"
OFFSET = 2_900
HARMLESS: tuple[type[AnyAck], ...] = (Follows, Applied, Release, Taken)
"""Kinds that do not end a plan before it has begun."""
RECORDS = 120
"""Processed between one plan and the next: about a second's."""
PLANS = 10
TAKE_TIMEOUT_S = 6.0


class Forger:
    """Writes to the acks topic of a group, as whoever he likes.

    Attributes:
        written: Number of records.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes, self._random = processes, Random(7)
        self._producer = Producer({"bootstrap.servers": processes.bootstrap, "log_level": 0})
        self.written = self.epoch = 0
        self.kinds = HARMLESS
        self.base: Any = None
        """Generation, member ids by process, and partitions by member id."""

    def write(self, ack: AnyAck) -> None:
        key, value = ack_records.encode_key(ack), ack_records.encode(ack)
        self._producer.produce(self._processes.acks, key=key, value=value, partition=0)
        self._producer.poll(0)
        self.written += 1

    def forge(self) -> None:
        """A dozen records, some of them those that others wrote before."""
        generation, ids, _ = self.base
        newest = {
            "cluster": self._processes.cluster,
            "group": self._processes.group,
            "generation": generation,
            "epoch": max(1, self.epoch),
        }
        places = [(self._processes.topic, number) for number in range(self._processes.partitions)]
        said = self._processes.all_acks()[-200:]
        for forgery in at_random(self._random, 12, self.kinds):
            if isinstance(forgery, Replay):
                old = [ack for ack in said if isinstance(ack, self.kinds)]
                ack = old[forgery.number % len(old)] if old else None
            else:
                ack = as_ack(forgery, newest, sorted(ids.values()), places)
            if ack is not None:
                self.write(ack)
        self.flush()

    def flush(self) -> None:
        assert self._producer.flush(10) == 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """All the time."""
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(0.02):
                self.forge()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def start(processes: Processes) -> None:
    for who in MEMBERS:
        processes.start(who, follower={"take_timeout_s": TAKE_TIMEOUT_S})


def test_forged_release_moves_nothing_and_the_plan_that_comes_is_applied_all_the_same(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "forged-release", tmp_path, partitions=3) as processes:
        start(processes)
        generation, ids, base = processes.base(3)
        forger = Forger(processes)
        giver, taker = ids["a"], ids["b"]
        (place,) = base[giver]
        so_far = processes.count("record")

        for epoch in (1, 2):
            head = {"cluster": processes.cluster, "group": processes.group, "generation": generation}
            where = {"topic": processes.topic, "partition": place, "hop": 1, "offset": OFFSET}
            forged = Release(**head, epoch=epoch, member=giver, at_ms=0, to=taker, **where)
            forger.write(forged)
            forger.flush()
        wait_until(lambda: processes.count("record") > so_far + RECORDS, what="records behind the forgery")
        plan = processes.publish(generation, base, one_moved(base, giver, taker))
        processes.wait_for_acks(Applied, plan, 2)
        processes.finish()

        assert processes.overlaps() == []
        assert processes.missing() == []
        assert set_back(broker.bootstrap_servers, processes.group) == []
        assert not any(isinstance(ack, Taken) and ack.epoch != plan for ack in processes.all_acks())


def test_adversary_on_the_acks_topic_makes_no_second_owner_and_sets_no_commit_back(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "forger", tmp_path) as processes:
        start(processes)
        forger = Forger(processes)
        random = Random(3)
        forger.base = processes.base(3)
        with forger.at_work():
            for number in range(PLANS):
                forger.kinds = HARMLESS if number < PLANS // 2 else KINDS
                # A release that nobody took makes the group rebalance.
                forger.base = generation, _, base = processes.base(3)
                target = target_at_random(base, processes.partitions, random)
                forger.epoch = processes.publish(generation, base, target)
                so_far = processes.count("record")
                wait_until(lambda so_far=so_far: processes.count("record") > so_far + RECORDS, what="records")
        handed_over = takes(broker.bootstrap_servers, processes.group)
        log.info("%s records forged, %s partitions handed over meanwhile", forger.written, handed_over)
        assert forger.written > 100
        assert handed_over > 0

        def applied() -> bool:
            generation, _, base = processes.base(3)
            epoch = processes.publish(generation, base, target_at_random(base, processes.partitions, random))
            return _is_applied(processes, epoch)

        wait_until(applied, what="a plan applied when nobody forges any more", within_s=60.0)
        processes.finish()

        assert processes.failed() == []
        assert processes.overlaps() == []
        assert processes.missing() == []
        assert processes.strays() == []
        assert set_back(broker.bootstrap_servers, processes.group) == []


def takes(bootstrap: str, group: str) -> int:
    """Number of partitions that a member has taken, as the broker has it."""
    return sum(mark.kind == "taken" for mark in marks_of(bootstrap, group))


def _is_applied(processes: Processes, epoch: int) -> bool:
    try:
        processes.wait_for_acks(Applied, epoch, len(MEMBERS), within_s=TAKE_TIMEOUT_S)
    except AssertionError:
        return False
    return True
