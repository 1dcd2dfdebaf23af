"""The processes of a follower under trial: started, told to stop, and heard by the lines that they print."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from assignor.protocol import control
from assignor.protocol.control import ControlRecord
from tests.conformance.lines import MalformedLineError, parse
from tests.support.follow_plans import key_of
from tests.support.follow_processes import Processes

PARTITIONS = 6
SESSION_S = 6.0
TAKE_S = 30.0
_WORDS_AT_END = 300


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
        # Epochs are seconds since 1970, which 32 bits will not hold.
        self._epoch = 2**31

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
            stdin = self._processes[who].stdin
            assert stdin is not None
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

    def put_raw(self, topic: str, key: bytes, value: bytes | None, epoch: int) -> None:
        """Any bytes at all, on any topic."""
        self._producer.produce(topic, key=key, value=value, headers=control.headers(epoch), partition=0)
        assert self._producer.flush(10) == 0

    def withdraw(self, record: ControlRecord) -> None:
        """Take back what the control topic says of the group."""
        self.put_raw(self.control, key_of(record), None, record.epoch)

    def crashed(self) -> list[str]:
        """Processes that have ended, though nobody killed them or told them to."""
        return [
            who
            for who, process in self._processes.items()
            if process.poll() not in (None, -signal.SIGKILL) and (process.returncode or not self._is_ending)
        ]

    def last_words(self, who: str) -> str:
        """The end of what a process wrote to its standard error."""
        text = self._stderr(who).read_text(errors="replace").strip()
        return json.dumps(text[-_WORDS_AT_END:]) if text else "nothing on standard error"

    def _stderr(self, who: str) -> Path:
        return self._folder / f"{self.group}-{who}.stderr"
