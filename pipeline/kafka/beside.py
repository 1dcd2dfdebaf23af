"""A process beside this one that asks the brokers what librdkafka may crash over (`list_offsets.question`).

The process is started when it is first asked, keeps its clients between batches, and ends when its input does: with
the process that started it, however that ends. When it dies the question has no answer, and the next one starts
another process.
"""

import atexit
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, ParamSpec, TypeVar, cast

from pipeline.child_python import command
from pipeline.errors import PipelineError

log = logging.getLogger(__name__)

# What a client may need beside the brokers' time, on a machine that has other things to do. Nobody knows of a process
# that has hung; one that did would hold the batch, and the end of the driver, for ever.
_CLIENT_S = 60.0

P = ParamSpec("P")
T = TypeVar("T")


class ProcessDiedError(PipelineError):
    """The process died, or was ended since it did not answer in time."""


class _Child:
    """A process that answers questions."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            command(f"from {__name__} import main; main()"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for this process to deal with.
            start_new_session=True,
        )
        self._questions: IO[bytes] = cast("IO[bytes]", self.process.stdin)
        self._answers: IO[bytes] = cast("IO[bytes]", self.process.stdout)

    def ask(self, question: Callable[..., Any], *args: object) -> tuple[Any, Exception | None]:
        """What the question returns, or raises.

        Raises:
            EOFError, OSError: It has died; or whatever else keeps the exchange from its end.
        """
        pickle.dump((question, args), self._questions)
        self._questions.flush()
        answer: tuple[Any, Exception | None] = pickle.load(self._answers)  # noqa: S301 - our own process wrote it
        return answer

    def end(self) -> int:
        """End it, whatever it does; its exit status."""
        self.process.kill()
        with suppress(OSError):
            # Of one that has died what was not sent cannot be.
            self._questions.close()
        self._answers.close()
        return self.process.wait()


class Beside:
    """Asks one question after the other."""

    def __init__(self) -> None:
        """Nothing is started."""
        self._child: _Child | None = None
        self._turn = threading.Lock()

    def ask(self, brokers_s: float, question: Callable[P, T], *args: P.args, **_kwargs: P.kwargs) -> T:
        """What the question returns there.

        Args:
            brokers_s: What the brokers may take. A process that takes a minute longer has hung, and is ended.
            question: A function of a module; it, what it is given and what it returns can be pickled.
            args: What it is given.

        Raises:
            ProcessDiedError: It has no answer.
            Exception: Whatever the question raises.
        """
        with self._turn:
            child = self._child = self._child or _Child()
            overdue = threading.Timer(brokers_s + _CLIENT_S, child.process.kill)
            overdue.daemon = True
            overdue.start()
            try:
                answer, error = child.ask(question, *args)
            except Exception as failure:
                # Whatever it is, what comes next would not be the answer to the next question.
                self._child = None
                log.warning(
                    "the process that asks the brokers has died, or was ended since it did not answer; "
                    "the next question starts another one",
                    extra={"question": question.__name__, "exit_status": child.end()},
                )
                raise ProcessDiedError("the process that asks the brokers has died") from failure
            finally:
                overdue.cancel()
        if error is not None:
            raise error
        return cast("T", answer)

    def close(self) -> None:
        """End the process; it is started again when it is asked."""
        with self._turn:
            if self._child is not None:
                self._child.end()
                self._child = None


process = Beside()
"""The one of this process."""
atexit.register(process.close)


def _answered(question: Callable[..., Any], args: tuple[object, ...]) -> tuple[Any, Exception | None]:
    try:
        return question(*args), None
    except Exception as error:  # noqa: BLE001 - whoever has asked is told
        return None, error


def _pickled(answer: Any, error: Exception | None) -> bytes:
    try:
        return pickle.dumps((answer, error))
    except Exception:  # noqa: BLE001 - those of confluent-kafka, for one, cannot be pickled
        return pickle.dumps((None, PipelineError(f"{type(error).__name__}: {error}")))


def main() -> None:
    """Answer what comes in, until nothing more does."""
    # A service manager may send it to all processes, and the batch at hand still wants its answers.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever writes to standard output must not come between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            question, args = pickle.load(sys.stdin.buffer)  # noqa: S301 - the process that started this one wrote it
        except EOFError:
            return
        answers.write(_pickled(*_answered(question, args)))
        answers.flush()
