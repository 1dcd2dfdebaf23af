"""Programs in Java that are not ours, with consumers that follow: what they say, and what their group is given."""

import os
import re
import subprocess
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType

from tests.support.brokers.broker import admin_client
from tests.support.followers.group_members import QUIET_S, PartitionKey
from tests.support.waiting import wait_until

SOURCES = Path(__file__).with_name("apps")
_JOINED = re.compile(
    r"groupId=(?P<group>[^\]]+)\] Successfully joined group with generation Generation\{generationId=(?P<n>\d+)"
)

Owned = dict[str, frozenset[PartitionKey]]
"""Member id to partitions."""


class JavaApp:
    """A running program; a context manager.

    Attributes:
        said: Its lines, of both streams.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.said: list[str] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> "JavaApp":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it in order, as SIGTERM does, or by force after half a minute."""
        self._process.terminate()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._thread.join(10)
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()

    def press(self) -> None:
        """One byte on its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(".")
        self._process.stdin.flush()

    def generation(self, group: str) -> int:
        """The newest that one of its consumers has joined; -1 before the first."""
        joined = (_JOINED.search(line) for line in list(self.said))
        return max((int(one["n"]) for one in joined if one and one["group"] == group), default=-1)

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self.said.append(line.rstrip())


def owned(bootstrap: str, group: str) -> Owned:
    """What the broker says that the members of a group have; nothing while the group rebalances."""
    # Without a name for it the client would be gone before the answer comes.
    admin = admin_client(bootstrap)
    described = admin.describe_consumer_groups([group])[group].result(10)
    if described.state.name != "STABLE":
        return {}
    return {
        member.member_id: frozenset((p.topic, p.partition) for p in member.assignment.topic_partitions)
        for member in described.members
    }


def settled(
    app: JavaApp,
    bootstrap: str,
    group: str,
    places: Collection[PartitionKey],
    *,
    members: int,
    after: int = -1,
) -> tuple[int, Owned]:
    """Generation and partitions of the group, once it has that many members and stays as it is for a while."""
    seen: list[tuple[float, tuple[int, Owned]]] = []

    def agree() -> bool:
        generation = app.generation(group)
        if generation <= after:
            # A coordinator may be long in answering about a group that nobody has joined.
            return False
        now = (generation, owned(bootstrap, group))
        if not seen or seen[-1][1] != now:
            seen.append((time.monotonic(), now))
        whole = sorted(place for one in now[1].values() for place in one) == sorted(places)
        return len(now[1]) == members and whole and time.monotonic() - seen[-1][0] > QUIET_S

    wait_until(agree, what=f"{members} members of {group} settled after generation {after}", every_s=0.2)
    return seen[-1][1]


def compiled(source: Path, folder: Path, jars: Sequence[Path], javac: Path) -> None:
    """Put the classes of a program into a folder.

    Raises:
        AssertionError: It does not compile; the message has the compiler's words.
    """
    path = os.pathsep.join(map(str, jars))
    done = subprocess.run(
        [str(javac), "--release", "17", "-parameters", "-cp", path, "-d", str(folder), str(source)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
