"""Kafka's own assignors and serializers, in one Java process that answers as long as it is asked.

Java compiles `Oracle.java` when it starts, so this takes a JDK; the jars are those of the embedded broker.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias, final

from pipeline.errors import MissingDependencyError
from pipeline.local.embedded.config import KAFKA
from pipeline.local.jars import resolve
from pipeline.local.java import find_java

Document: TypeAlias = dict[str, Any]
"""A JSON case: topics, members, racks, as `assignor.cases.input` reads them."""

ByMember: TypeAlias = dict[str, dict[str, list[int]]]
"""Partition numbers by topic, by member."""

_PROGRAM = Path(__file__).with_name("Oracle.java")
_ENDED_WITHIN_S = 30


class KafkaError(Exception):
    """Kafka's code threw; the message is what it said."""


@final
class KafkaAssignors:
    """A running oracle; a context manager."""

    def __init__(self, *, java_options: tuple[str, ...] = ("-Xmx512m",)) -> None:
        """Start Java.

        Args:
            java_options: Heap and compiler of the process.

        Raises:
            MissingDependencyError: No Java; the message has the install line.
        """
        self._java = find_java()
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed with the process
        jars = os.pathsep.join(map(str, resolve(KAFKA)))
        self._process = subprocess.Popen(
            [self._java, *java_options, "-cp", jars, _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            encoding="utf-8",
        )

    def __enter__(self) -> "KafkaAssignors":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The end of its input ends the program.
        self._process.communicate(timeout=_ENDED_WITHIN_S)
        self._said.close()

    def assign(self, assignor: str, document: Mapping[str, Any]) -> ByMember:
        """What Kafka's assignor of this name makes of a case.

        Raises:
            KafkaError: It threw instead.
        """
        answer: ByMember = self.ask(document | {"do": "assign", "assignor": assignor})
        return answer

    def ask(self, question: Mapping[str, Any]) -> Any:
        """The answer to one question; the questions there are stand in `Oracle.java`.

        Raises:
            KafkaError: Kafka threw.
            MissingDependencyError: This Java cannot compile.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(question) + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise self._explained() from None
        line = stdout.readline()
        if not line:
            raise self._explained()
        reply = json.loads(line)
        if "error" in reply:
            raise KafkaError(reply["error"])
        return reply["answer"]

    def _explained(self) -> Exception:
        """Why there is no answer."""
        self._process.wait(timeout=_ENDED_WITHIN_S)
        self._said.seek(0)
        said = self._said.read()
        if "jdk.compiler" in said:
            return MissingDependencyError(
                f"{self._java} is a Java without a compiler, and the oracle is a Java source file: install a "
                "JDK 17, on Debian and Ubuntu with sudo apt-get install openjdk-17-jdk-headless"
            )
        return RuntimeError(f"the oracle ended: {said}")
