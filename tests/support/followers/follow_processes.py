"""Consumer processes that follow the control topic, and the judge of what they did.

Each process appends lines of JSON to one file, with the machine's monotonic clock:

    {"at":…,"who":"a","what":"gained|joined","places":[…],"generation":…}
    {"at":…,"who":"a","what":"revoked|lost","places":[…]}
    {"at":…,"who":"a","what":"record","place":3,"offset":17}
    {"at":…,"who":"a","what":"log","level":"WARNING","text":"…"}
"""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, TypeAlias

from confluent_kafka import Producer

from assignor.protocol import control
from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord
from assignor.protocol.migration import Migration
from tests.support.brokers.acks_topic import read_acks
from tests.support.brokers.broker import admin_client, create_topics
from tests.support.brokers.flow import RECORDS_PER_S, Flow
from tests.support.followers.follow_plans import key_of, plan
from tests.support.followers.stays import Stay, overlapping
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]

_ENDED_JVM = 128 + signal.SIGTERM
"""What a JVM ends with after SIGTERM, once its shutdown hooks have run."""

Base: TypeAlias = tuple[int, dict[str, str], dict[str, list[int]]]
"""Generation, member id by process, and what Kafka assigned by member id."""


class Processes:
    """Processes of one group, numbered records that flow to its topic, and its control and acks topics."""

    def __init__(
        self,
        bootstrap: str,
        name: str,
        folder: Path,
        *,
        partitions: int = 6,
        module: str = "tests.support.followers.follow_member",
        config: Mapping[str, Any] | None = None,
        make_topics: Callable[[str, Mapping[str, int]], None] = create_topics,
        records_per_s: float = RECORDS_PER_S,
    ) -> None:
        self.bootstrap, self._module, self._config = bootstrap, module, dict(config or {})
        self.group, self.topic = f"{name}-group", f"{name}-topic"
        self.control, self.acks = f"{name}-control", f"{name}-acks"
        self.partitions = partitions
        make_topics(bootstrap, {self.topic: partitions, self.control: 1, self.acks: 1})
        self.cluster = str(admin_client(bootstrap).list_topics(timeout=10).cluster_id)
        self._log = folder / f"{name}.jsonl"
        self._log.touch()
        self._read, self._lines = 0, list[dict[str, Any]]()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self._flow = Flow(bootstrap, self.topic, partitions=partitions, records_per_s=records_per_s)
        self.migration: Migration = "disabled"
        """What plans say of it."""
        self._epoch = 0
        self._said: list[ControlRecord] = []
        self._late: list[ControlRecord] = []
        self.late = 0
        """Plans that came behind a later one."""

    def __enter__(self) -> "Processes":
        self._flow.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flow.end()
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()

    @property
    def produced(self) -> int:
        """Records in each partition."""
        return self._flow.produced

    def start(self, who: str, *, module: str | None = None, **options: Any) -> None:
        """A process; options are those of the module that it runs, which is that of all unless it has its own."""
        fixed = {"bootstrap": self.bootstrap, "group": self.group, "topic": self.topic, "log": str(self._log)}
        topics = {"control": self.control, "acks": self.acks}
        words = json.dumps({"who": who, **fixed, **topics, "config": self._config, **options})
        command = [sys.executable, "-m", module or self._module, words]
        self._processes[who] = subprocess.Popen(command, cwd=ROOT)

    def send(self, who: str, number: signal.Signals) -> None:
        if number == signal.SIGCONT:
            self._note(who, "woken")
        os.kill(self._processes[who].pid, number)
        if number in (signal.SIGKILL, signal.SIGSTOP):
            self._note(who, "hurt")

    def kill(self, who: str) -> None:
        """Return when it is dead, so that another may have its name."""
        self.send(who, signal.SIGKILL)
        self._processes[who].wait()

    def _note(self, who: str, what: str) -> None:
        line = {"at": time.monotonic(), "who": who, "what": what}
        with self._log.open("a") as log:
            log.write(json.dumps(line) + "\n")

    def leave(self, who: str) -> None:
        """Return when the process has closed its consumer and ended."""
        self._processes[who].send_signal(signal.SIGTERM)
        assert self._processes[who].wait(30) in (0, _ENDED_JVM)

    def ended(self, who: str) -> bool:
        return self._processes[who].poll() is not None

    def lines(self) -> list[dict[str, Any]]:
        """What the processes wrote; a line that is being written is left out."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            whole = b"".join(log.read().rpartition(b"\n")[:2])
        self._read += len(whole)
        self._lines += [json.loads(line) for line in whole.splitlines()]
        return self._lines

    def count(self, what: str, *, who: str | None = None) -> int:
        """Lines that say so, of all processes or of one."""
        return sum(line["what"] == what and who in (None, line["who"]) for line in self.lines())

    def logged(self, part: str) -> list[str]:
        """Who has logged a text with that part, as often as it has."""
        return sorted(line["who"] for line in self.lines() if line["what"] == "log" and part in line["text"])

    def base(self, members: int, *, after: int = -1) -> Base:
        """The group, once that many members are in one generation after the given one."""
        found: list[Base] = []

        def stable() -> bool:
            now = self.current(after=after)
            found[:] = [now] if now is not None and len(now[1]) == members else []
            return bool(found)

        wait_until(stable, what=f"{members} members of {self.group} in one generation", within_s=120)
        return found[0]

    def current(self, *, after: int = -1) -> Base | None:
        """The group if all of its partitions are assigned in one generation after the given one."""
        last = {line["who"]: line for line in self.lines() if line["what"] in ("joined", "lost", "hurt")}
        joined = {who: line for who, line in last.items() if line["what"] == "joined"}
        live = {
            who: line for who, line in joined.items() if line["generation"] > after and not self.ended(who)
        }
        generations = {line["generation"] for line in live.values()}
        if len(generations) != 1 or sum(len(line["places"]) for line in live.values()) != self.partitions:
            return None
        ids = {who: str(line["member"]) for who, line in live.items()}
        return generations.pop(), ids, {str(line["member"]): line["places"] for line in live.values()}

    def publish(
        self,
        generation: int,
        base: Mapping[str, list[int]],
        target: Mapping[str, list[int]],
        *,
        valid_s: float | None = None,
    ) -> int:
        """Put a plan on the control topic, valid for ever unless told otherwise, and give its epoch."""
        epoch, record = self._record(generation, base, target)
        if valid_s is not None:
            record = replace(record, valid_until_ms=round((time.time() + valid_s) * 1000))
        self._write(record)
        return epoch

    def publish_in_disorder(
        self, generation: int, base: Mapping[str, list[int]], target: Mapping[str, list[int]], random: Random
    ) -> None:
        """As no control topic ever should: the plan comes now, twice, later, or after an older one comes again."""
        _, record = self._record(generation, base, target)
        disorder = random.choice(["now", "now", "twice", "later", "older"])
        if disorder == "later":
            self._late.append(record)
            return
        if disorder == "older" and self._said:
            self._write(random.choice(self._said[-5:]))
        self._write(record)
        if disorder == "twice":
            self._write(record)
        for late in self._late:
            # Behind a plan with a later epoch.
            self._write(late)
        self.late += len(self._late)
        self._late.clear()

    def _record(
        self, generation: int, base: Mapping[str, list[int]], target: Mapping[str, list[int]]
    ) -> tuple[int, ControlRecord]:
        self._epoch += 1
        names = {"topic": self.topic, "cluster": self.cluster, "group": self.group}
        record = plan(
            base, target, epoch=self._epoch, generation=generation, migration=self.migration, **names
        )
        return self._epoch, record

    def _write(self, record: ControlRecord) -> None:
        self._producer.produce(
            self.control,
            key=key_of(record),
            value=control.encode(record),
            headers=control.headers(record.epoch),
        )
        assert self._producer.flush(10) == 0
        self._said.append(record)

    def all_acks(self) -> list[AnyAck]:
        """The acks topic, from its beginning."""
        return read_acks(self.bootstrap, self.acks)

    def wait_for_acks(self, kind: type[AnyAck], epoch: int, members: int, *, within_s: float = 30.0) -> None:
        """Return when that many members have said it of the plan."""

        def said() -> bool:
            return members <= len(
                {ack.member for ack in self.all_acks() if isinstance(ack, kind) and ack.epoch == epoch}
            )

        wait_until(said, what=f"{members} x {kind.__name__} of epoch {epoch}", within_s=within_s)

    def finish(self) -> None:
        """End the flow, and return when every record was processed and every process has left."""
        self.drain()
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            process.wait(30)

    def failed(self) -> list[str]:
        """Processes that an exception has ended."""
        return [who for who, process in self._processes.items() if process.poll() not in (None, 0)]

    def drain(self) -> None:
        """End the flow, and return when every record was processed."""
        self._flow.end()
        wait_until(lambda: not self.missing(), what="every record processed", within_s=60)

    def missing(self) -> list[tuple[int, int]]:
        """Records that nobody has processed."""
        seen = {(line["place"], line["offset"]) for line in self.lines() if line["what"] == "record"}
        return [(p, o) for p in range(self.partitions) for o in range(self.produced) if (p, o) not in seen]

    def repeated(self) -> int:
        """Records processed more than once."""
        records = [(line["place"], line["offset"]) for line in self.lines() if line["what"] == "record"]
        return len(records) - len(set(records))

    def overlaps(self) -> list[tuple[Stay[int], Stay[int]]]:
        """Pairs of stays of two processes with one partition at one time.

        A process that was stopped or killed ends its stays there: what it holds is nobody's until its session
        ends, and what it commits after is refused. Nor is a stay counted that such a process begins, when it goes
        on, in a generation that has passed it by: it had proven its membership and was about to read when it was
        stopped. No consumer of Kafka can know better before its client has heard from the coordinator.
        """
        asleep = self._slept_in()
        return [
            pair
            for pair in overlapping(self._stays())
            if pair[0].generation == pair[1].generation
            or (min(pair, key=_generation).who, min(pair, key=_generation).generation) not in asleep
        ]

    def _slept_in(self) -> set[tuple[str, int]]:
        """Processes that were stopped or killed, each with its generation at that time.

        Or with the one that it was joining: one that it enters when it goes on, and others were in a later one.
        """
        generation, missed = dict[str, int](), dict[str, int]()
        asleep = set()
        for line in sorted(self.lines(), key=lambda line: line["at"]):
            who = line["who"]
            if line["what"] == "hurt":
                asleep.add((who, generation.get(who, -1)))
            elif line["what"] == "woken":
                missed[who] = max(generation.values(), default=-1)
            elif "generation" in line:
                generation[who] = line["generation"]
                if generation[who] < missed.get(who, -1):
                    asleep.add((who, generation[who]))
        return asleep

    def strays(self) -> list[dict[str, Any]]:
        """Records that a process has processed while it did not read their partition."""
        stays: dict[tuple[str, int], list[Stay[int]]] = {}
        for stay in self._stays():
            stays.setdefault((stay.who, stay.place), []).append(stay)
        return [
            line
            for line in self.lines()
            if line["what"] == "record"
            and not any(s.start <= line["at"] <= s.end for s in stays.get((line["who"], line["place"]), ()))
        ]

    def _stays(self) -> list[Stay[int]]:
        stays, begun = list[Stay[int]](), dict[tuple[str, int], tuple[float, int]]()

        def end(who: str, place: int, at: float) -> None:
            if (who, place) in begun:
                start, generation = begun.pop((who, place))
                stays.append(Stay(place=place, who=who, generation=generation, start=start, end=at))

        for line in sorted(self.lines(), key=lambda line: line["at"]):
            who, at, places = line["who"], line["at"], line.get("places", [])
            if line["what"] == "gained":
                begun.update({(who, place): (at, line["generation"]) for place in places})
            elif line["what"] == "hurt":
                places = [place for name, place in begun if name == who]
            if line["what"] in ("revoked", "lost", "hurt"):
                for place in places:
                    end(who, place, at)
        for who, place in list(begun):
            end(who, place, math.inf)
        return stays


def _generation(stay: Stay[int]) -> int:
    return stay.generation
