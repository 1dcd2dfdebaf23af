"""Source: log offsets asked for by a process beside this one, which librdkafka may crash (`list_offsets.question`).

The process is started when it is first asked, keeps its client between batches, and ends when its input does: with
the process that started it, however that ends. When it dies, nothing is known of what it was asked for, and the next
batch starts another one.
"""

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, cast

import pyarrow as pa

from pipeline import clock
from pipeline.kafka.sources.log_offsets.ask import LOG_OFFSETS, ask, listing
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings, Share

log = logging.getLogger(__name__)

# What the client may need beside the brokers' time, on a machine that has other things to do. Nobody knows of a process
# that has hung; one that did would hold the batch, and the end of the driver, for ever.
_CLIENT_S = 60.0
_CLIENT_S_PER_PARTITION = 0.001
_DIED = "the process that asks the brokers has died"


class _Child:
    """A process that answers questions."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # spark-submit may have put the code on this process's path alone.
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            # Ctrl-C is for this process to deal with.
            start_new_session=True,
        )
        self._questions: IO[bytes] = cast("IO[bytes]", self.process.stdin)
        self._answers: IO[bytes] = cast("IO[bytes]", self.process.stdout)

    def ask(self, settings: LogOffsetsSettings, share: Share) -> pa.RecordBatch:
        """What it answers.

        Raises:
            EOFError, OSError, UnpicklingError: It has died.
        """
        pickle.dump((settings, share), self._questions)
        self._questions.flush()
        return pickle.load(self._answers)  # noqa: S301 - our own process wrote it

    def end(self) -> int:
        """End it, whatever it does; its exit status."""
        self.process.kill()
        with suppress(OSError):
            # Of one that has died what was not sent cannot be.
            self._questions.close()
        self._answers.close()
        return self.process.wait()


class Asker:
    """Asks one share after the other."""

    def __init__(self) -> None:
        """Nothing is started."""
        self._child: _Child | None = None
        self._turn = threading.Lock()

    def ask(self, settings: LogOffsetsSettings, share: Share) -> pa.RecordBatch:
        """As `ask.ask`; when the process dies, every row has that as its error."""
        with self._turn:
            child = self._child = self._child or _Child()
            overdue = threading.Timer(_longest_s(settings, share), child.process.kill)
            overdue.daemon = True
            overdue.start()
            try:
                return child.ask(settings, share)
            except (EOFError, OSError, pickle.UnpicklingError):
                self._child = None
                log.warning(
                    "the process that asks the brokers for log offsets has died, or was ended since it did not answer; "
                    "they keep what was known, and the next batch starts another one",
                    extra={"exit_status": child.end()},
                )
                return _unanswered(settings, share)
            finally:
                overdue.cancel()

    def close(self) -> None:
        """End the process; it is started again when it is asked."""
        with self._turn:
            if self._child is not None:
                self._child.end()
                self._child = None


def _longest_s(settings: LogOffsetsSettings, share: Share) -> float:
    partitions = sum(len(numbers) for _, numbers in share.topics)
    # For leaders, for offsets, and for those that are asked again, each of which ends by its time-out.
    return 3 * settings.request_timeout_s + _CLIENT_S + _CLIENT_S_PER_PARTITION * partitions


def _unanswered(settings: LogOffsetsSettings, share: Share) -> pa.RecordBatch:
    same = {"isolation": settings.isolation, "observed_at_ms": clock.now_ms(), "error": _DIED}
    rows = [
        same | {"topic": topic, "partition": number} for topic, numbers in share.topics for number in numbers
    ]
    return pa.RecordBatch.from_pylist([*listing(settings, share), *rows], LOG_OFFSETS)


def main() -> None:
    """Answer what comes in, until nothing more does."""
    # A service manager may send it to all processes, and the batch at hand still wants its answers.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever writes to standard output must not come between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            settings, share = pickle.load(sys.stdin.buffer)  # noqa: S301 - the process that started this one wrote it
        except EOFError:
            return
        pickle.dump(ask(settings, share), answers)
        answers.flush()


if __name__ == "__main__":
    main()
