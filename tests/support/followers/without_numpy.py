"""A member of a group in a process in which numpy cannot be imported: it follows, and leads only to an error.

python -m tests.support.followers.without_numpy kafka_python|aiokafka follows|leads

`follows` prints what the member took in and acknowledged; `leads` prints the error.
"""

import asyncio
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from assignor.clients.plugin.user_data import AssignmentData, Outcome, encode_assignment_data
from assignor.errors import AssignorError

_CONNECTION = {"bootstrap_servers": "127.0.0.1:1"}
_FOLLOWS = {"cluster": "c", "group_id": "g"}
_ANSWER = encode_assignment_data(AssignmentData(epoch=9, outcome=Outcome.APPLIED))
_STRATEGIES = (
    "constrained-cooperative-sticky",
    "cooperative-sticky",
    "range",
    "sticky",
    "sticky-stream-join",
)


class _NoNumpy(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] == "numpy":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


class _Cluster:
    def partitions_for_topic(self, _topic: str) -> set[int]:
        return {0, 1}


def _kafka_python(*, leads: bool) -> list[Any]:
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment  # noqa: PLC0415 - behind the finder

    from assignor.clients.kafka_python import (  # noqa: PLC0415 - behind the finder
        COOPERATIVE,
        Following,
        LagAwareAssignor,
        StrategyAssignor,
    )

    LagAwareAssignor(group_id="g", **_CONNECTION)
    for name in _STRATEGIES:
        StrategyAssignor(name)
    Following(**_FOLLOWS, **_CONNECTION, protocol=COOPERATIVE)
    assignor = Following(**_FOLLOWS, **_CONNECTION).assignor
    assignor.attach(SimpleNamespace(group_metadata=lambda: SimpleNamespace(member_id="m")))
    joined = assignor.metadata({"t"})
    if leads:
        member = SimpleNamespace(member_id="m", metadata=joined, group_instance_id=None)
        assignor.assign(_Cluster(), [member])
    assignor.on_assignment(
        ConsumerProtocolAssignment(version=0, assigned_partitions=[("t", [1])], user_data=_ANSWER), 3
    )
    return [assignor.past.owned, *assignor.acks]


def _aiokafka(*, leads: bool) -> list[Any]:
    return asyncio.run(_in_loop(leads=leads))


async def _in_loop(*, leads: bool) -> list[Any]:
    from aiokafka.coordinator.protocol import (  # noqa: PLC0415 - behind the finder
        ConsumerProtocolMemberAssignment,
    )

    from assignor.clients.aiokafka import (  # noqa: PLC0415 - behind the finder
        Following,
        LagAwareAssignor,
        StrategyAssignor,
    )

    LagAwareAssignor(group_id="g", **_CONNECTION)
    for name in _STRATEGIES:
        StrategyAssignor(name)
    following = Following(**_FOLLOWS, **_CONNECTION)
    assignor = following.assignor

    async def perform(response: Any) -> Any:
        return assignor.assign(_Cluster(), dict.fromkeys(name for name, _, _ in response.members))

    coordinator = SimpleNamespace(generation=3, member_id="m", _perform_assignment=perform)
    assignor.attach(SimpleNamespace(_coordinator=coordinator))
    async with following:
        joined = bytes(assignor.metadata({"t"}).encode())
    if leads:
        response = SimpleNamespace(group_protocol=assignor.name, members=[("m", None, joined)])
        await coordinator._perform_assignment(response)
    assignor.on_assignment(ConsumerProtocolMemberAssignment(0, [("t", [1])], _ANSWER))
    return [assignor.past.owned, *assignor.acks]


def main() -> None:
    """Print what became of it."""
    client, role = sys.argv[1:]
    assert "numpy" not in sys.modules
    sys.meta_path.insert(0, _NoNumpy())
    run = {"kafka_python": _kafka_python, "aiokafka": _aiokafka}[client]
    try:
        print(*run(leads=role == "leads"))  # noqa: T201 - its answer
    except AssignorError as error:
        print(f"{type(error).__name__}: {error}")  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
