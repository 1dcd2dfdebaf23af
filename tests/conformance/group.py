"""The processes of a follower under trial: started, told to stop, and heard by the lines that they print."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import Producer

from assignor.protocol import control
from assignor.protocol.acks import AnyAck
from assignor.protocol.control import ControlRecord
from tests.conformance.lines import MalformedLineError, parse
from tests.support.followers.follow_plans import key_of
from tests.support.followers.follow_processes import Base, Processes
from tests.support.waiting import wait_until

PARTITIONS = 6
SESSION_S = 6.0
TAKE_S = 30.0
STOP_WITHIN_S = 20.0
_WORDS_AT_END = 300


class DeadMemberError(AssertionError):
    """A process has ended by itself: what is waited for will not come."""


class Group(Processes):
    """Processes of one command, whose standard outputs are one file: what is printed first stands first.

    So no clock is compared with another: the number of a line is its time.

    Attributes:
        malformed: Lines that follow no form.
    """

    def __init__(self, bootstrap: str, name: str, folder: Path, command: Sequence[str]) -> None:
        super().__init__(bootstrap, name, folder, partitions=PARTITIONS)
        self._command, self._folder = list(command), folder
        self.malformed: list[str] = []
        self._is_ending = False
        self._leaving, self._buried = set[str](), set[str]()
        # As the job counts: seconds since 1970.
        self._epoch = int(time.time())

    def start(self, who: str, **options: Any) -> None:
        """A process; options go into its environment as they are.

        Raises:
            OSError: There is no such command.
        """
        environment = {
            "LAGWISE_BOOTSTRAP_SERVERS": self.bootstrap,
            "LAGWISE_CLUSTER": self.cluster,
            "LAGWISE_GROUP": self.group,
            "LAGWISE_TOPIC": self.topic,
            "LAGWISE_CONTROL_TOPIC": self.control,
            "LAGWISE_ACKS_TOPIC": self.acks,
            "LAGWISE_MEMBER": who,
            "LAGWISE_SESSION_TIMEOUT_MS": str(round(SESSION_S * 1000)),
            "LAGWISE_TAKE_TIMEOUT_MS": str(round(TAKE_S * 1000)),
        }
        with self._log.open("ab") as lines, self._stderr(who).open("ab") as stderr:
            self._processes[who] = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=lines,
                stderr=stderr,
                env={**os.environ, **environment, **options},
                # A command may be a script that starts the follower: signals go to all of it.
                start_new_session=True,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for who in self.alive():
            os.killpg(self._processes[who].pid, signal.SIGKILL)
        super().__exit__(kind, error, trace)
        for process in self._processes.values():
            assert process.stdin is not None
            process.stdin.close()

    def alive(self) -> list[str]:
        """Processes that have not ended."""
        return [who for who in self._processes if not self.ended(who)]

    def send(self, who: str, number: signal.Signals) -> None:
        """A signal that the judge is to know of."""
        if number == signal.SIGCONT:
            self._note(who, "woken")
        self.interrupt(who, number)
        if number in (signal.SIGKILL, signal.SIGSTOP):
            self._note(who, "hurt")

    def interrupt(self, who: str, number: signal.Signals) -> None:
        """A signal after which the process is as much a member as before."""
        os.killpg(self._processes[who].pid, number)

    def _note(self, who: str, what: str) -> None:
        with self._log.open("a") as log:
            log.write(f"{who} {what}\n")

    def tell_to_stop(self) -> None:
        """Every process that runs."""
        self._is_ending = True
        for who in self.alive():
            self._tell_to_stop(who)

    def leave(self, who: str) -> None:
        """Tell one process to stop, and return when it has ended."""
        self._leaving.add(who)
        self._tell_to_stop(who)
        wait_until(lambda: self.ended(who), what=f"{who} stopped", within_s=STOP_WITHIN_S)

    def _tell_to_stop(self, who: str) -> None:
        stdin = self._processes[who].stdin
        assert stdin is not None
        # One that has just died is found out by its status.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(b"stop\n")
            stdin.flush()

    def killed(self, who: str) -> None:
        """Kill a process, and return when it is gone."""
        self.send(who, signal.SIGKILL)
        self._processes[who].wait()

    def lines(self) -> list[dict[str, Any]]:
        """What the processes printed, with the number of each line as its time."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            whole = b"".join(log.read().rpartition(b"\n")[:2])
        self._read += len(whole)
        for text in whole.decode(errors="replace").splitlines():
            try:
                self._lines.append({**parse(text), "at": float(len(self._lines))})
            except MalformedLineError:
                self.malformed.append(text)
        return self._lines

    def owners(self) -> dict[int, set[str]]:
        """Processes that read each partition now."""
        owners: dict[int, set[str]] = {number: set() for number in range(self.partitions)}
        for stay in self._stays():
            if stay.end == float("inf"):
                owners[stay.place].add(stay.who)
        return owners

    def draft(
        self, generation: int, base: dict[str, list[int]], target: dict[str, list[int]]
    ) -> ControlRecord:
        """The next plan, which is not published yet."""
        return self._record(generation, base, target)[1]

    def put(self, record: ControlRecord) -> None:
        """Publish a plan as it is."""
        self._write(record)

    def plan_of(self, epoch: int) -> ControlRecord:
        """The plan that was published with that epoch."""
        return next(record for record in self._said if record.epoch == epoch)

    def put_written(self, record: ControlRecord, value: bytes) -> None:
        """Publish a plan in the words of another version of the job."""
        self.put_raw(self.control, key_of(record), value, record.epoch)
        self._said.append(record)

    def put_aborted(self, record: ControlRecord) -> None:
        """Write a plan in a transaction that is aborted when the plan stands in the log."""
        names = {"bootstrap.servers": self.bootstrap, "transactional.id": f"{self.group}-aborted"}
        producer = Producer({**names, "log_level": 0})
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce(self.control, key=key_of(record), value=control.encode(record), partition=0)
        assert producer.flush(10) == 0
        producer.abort_transaction(10)

    def put_raw(self, topic: str, key: bytes, value: bytes | None, epoch: int | None) -> None:
        """Any bytes at all, on any topic; no headers without an epoch."""
        headers = [] if epoch is None else control.headers(epoch)
        self._producer.produce(topic, key=key, value=value, headers=headers, partition=0)
        assert self._producer.flush(10) == 0

    def withdraw(self, record: ControlRecord, *, names_epoch: bool = True) -> None:
        """Take back what the control topic says of the group."""
        self.put_raw(self.control, key_of(record), None, record.epoch if names_epoch else None)

    def skip_to(self, epoch: int) -> None:
        """The next plan has this epoch."""
        self._epoch = epoch - 1

    def crashed(self) -> list[str]:
        """Processes that have ended, though nobody killed them or told them to."""
        return [
            who
            for who, process in self._processes.items()
            if process.poll() not in (None, -signal.SIGKILL)
            and (process.returncode or not (self._is_ending or who in self._leaving))
        ]

    def dead(self) -> list[str]:
        """Those of them that no rule has failed for yet."""
        return [who for who in self.crashed() if who not in self._buried]

    def bury(self) -> None:
        """Count those that are dead no more."""
        self._buried |= set(self.crashed())

    def fail_if_dead(self) -> None:
        """Nothing, as long as nobody is.

        Raises:
            DeadMemberError: Somebody is.
        """
        if dead := self.dead():
            raise DeadMemberError(f"{', '.join(dead)} ended without being told to")

    def current(self, *, after: int = -1) -> Base | None:
        self.fail_if_dead()
        return super().current(after=after)

    def all_acks(self) -> list[AnyAck]:
        self.fail_if_dead()
        return super().all_acks()

    def missing(self) -> list[tuple[int, int]]:
        found = super().missing()
        if found and not self.alive():
            raise DeadMemberError(f"{len(found)} records were not processed, and no member is left")
        return found

    def last_words(self, who: str) -> str:
        """The end of what a process wrote to its standard error."""
        text = self._stderr(who).read_text(errors="replace").strip()
        return json.dumps(text[-_WORDS_AT_END:]) if text else "nothing on standard error"

    def _stderr(self, who: str) -> Path:
        return self._folder / f"{self.group}-{who}.stderr"
