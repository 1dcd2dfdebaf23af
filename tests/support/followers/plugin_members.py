"""Members of kafka-python and aiokafka under the assignors of this package."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.structs import MemberState

from assignor.clients import aiokafka as of_aiokafka
from assignor.clients import kafka_python as of_kafka_python
from assignor.clients.kafka_python.private import is_cooperative, is_stuck, request_rejoin
from tests.support.followers.group_members import PartitionKey, ThreadedMember

QUICK = {"session_timeout_ms": 20_000, "heartbeat_interval_ms": 300, "auto_offset_reset": "earliest"}
POLL_MS = 100


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """Tells a member what its client tells."""

    def __init__(self, member: "KafkaPythonMember") -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Iterable[PartitionKey]) -> None:
        self._member._begin(assigned)

    def on_partitions_revoked(self, revoked: Iterable[PartitionKey]) -> None:
        self._member._end(revoked)

    def on_partitions_lost(self, lost: Iterable[PartitionKey]) -> None:
        self._member._end(lost)
        self._member._lose(frozenset(lost))


class KafkaPythonMember(ThreadedMember):
    """A member of kafka-python.

    It follows a control topic where it is given one, else it goes by a strategy; with neither it is a plain consumer
    of the client, on the assignors `beside`; `by_default` it has the whole list that following offers. Told of a loss it
    calls `on_lost` with its consumer. More keywords are settings of its consumer.

    Attributes:
        lost: What it was told that it had lost.
        is_cooperative: Whether it keeps its partitions in its next join.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topics: Sequence[str],
        *,
        control_topic: str | None = None,
        acks_topic: str | None = None,
        strategy: str | None = None,
        protocol: Any = of_kafka_python.EAGER,
        beside: Sequence[Any] = (),
        poll_ms: int = POLL_MS,
        connection: Mapping[str, Any] | None = None,
        by_default: bool = False,
        on_lost: Callable[[KafkaConsumer, frozenset[PartitionKey]], None] | None = None,
        **settings: Any,
    ) -> None:
        self._on_lost, self._consumer = on_lost, None
        self.lost: list[frozenset[PartitionKey]] = []
        self.is_cooperative = False
        self._bootstrap, self._group, self._topics = bootstrap, group, topics
        self._settings, self._by_default = settings, by_default
        self._connection = connection or {"bootstrap_servers": bootstrap}
        self._control_topic, self._acks_topic = control_topic, acks_topic
        self._strategy, self._protocol = strategy, protocol
        self._beside, self._poll_ms = beside, poll_ms
        super().__init__()

    def _run(self) -> None:
        with ExitStack() as stack:
            following = stack.enter_context(self._following()) if self._control_topic else None
            assignor = following.assignor if following else self._of_strategy()
            consumer = KafkaConsumer(
                bootstrap_servers=self._bootstrap,
                group_id=self._group,
                partition_assignment_strategy=self._listed(following, assignor),
                **{**QUICK, **self._settings},
            )
            stack.callback(consumer.close)
            for entry in (following, assignor, *self._beside):
                _attach(entry, consumer)
            self._consumer = consumer
            consumer.subscribe(self._topics, listener=_Listener(self))
            while not self._stopping.is_set():
                if following:
                    following.keep_up()
                elif assignor:
                    assignor.watch()
                elif is_stuck(consumer):
                    request_rejoin(
                        consumer
                    )  # as a plain consumer of this client ends up without a poll of seconds
                self._take(consumer.poll(timeout_ms=self._poll_ms))
                self._look(consumer)

    def _lose(self, lost: frozenset[PartitionKey]) -> None:
        self.lost.append(lost)
        if self._on_lost is not None:
            self._on_lost(self._consumer, lost)

    def _listed(self, following: of_kafka_python.Following | None, assignor: Any) -> list[Any]:
        if following and self._by_default:
            return [*following.assignors]
        return [*([assignor] if assignor else []), *self._beside]

    def _following(self) -> of_kafka_python.Following:
        return of_kafka_python.Following(
            cluster="local",
            group_id=self._group,
            protocol=self._protocol,
            control_topic=self._control_topic or "",
            acks_topic=self._acks_topic,
            **self._connection,
        )

    def _of_strategy(self) -> of_kafka_python.StrategyAssignor | None:
        return of_kafka_python.StrategyAssignor(self._strategy, self._protocol) if self._strategy else None

    def _look(self, consumer: KafkaConsumer) -> None:
        # The IO thread joins while we look: a view is one only if the generation was the same before and after.
        before, owned, after = consumer.group_metadata(), consumer.assignment(), consumer.group_metadata()
        if before == after and before.state == MemberState.STABLE:
            self.assignor = consumer._coordinator._generation.protocol
            self.is_cooperative = is_cooperative(consumer)
            self._see(generation=before.generation_id, member_id=before.member_id, owned=owned)


class AiokafkaMember(ThreadedMember):
    """A member of aiokafka; it follows a control topic where it is given one, with its assignors `beside`.

    More keywords are settings of its consumer.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topics: Sequence[str],
        *,
        control_topic: str | None = None,
        acks_topic: str | None = None,
        beside: Sequence[Any] = (),
        connection: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self._bootstrap, self._group, self._topics = bootstrap, group, topics
        self._settings = settings
        self._connection = connection or {"bootstrap_servers": bootstrap}
        self._control_topic, self._acks_topic = control_topic, acks_topic
        self._beside = beside
        self._loop: asyncio.AbstractEventLoop | None = None
        super().__init__()

    def _run(self) -> None:
        asyncio.run(self._consume())

    def _where(self) -> str:
        tasks = asyncio.all_tasks(self._loop) if self._loop else ()
        return "\n".join(" < ".join(_waiting_in(task)) for task in tasks)

    async def _consume(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            following = await stack.enter_async_context(self._following()) if self._control_topic else None
            consumer = AIOKafkaConsumer(
                group_id=self._group,
                bootstrap_servers=self._bootstrap,
                partition_assignment_strategy=[*([following.assignor] if following else []), *self._beside],
                **{**QUICK, **self._settings},
            )
            consumer.subscribe(self._topics, listener=_AiokafkaListener(self))
            for entry in (following, *self._beside):
                _attach(entry, consumer)
            stack.push_async_callback(consumer.stop)
            # It gives everything up when it stops, and tells no listener.
            stack.callback(lambda: self._end(list(self._begun)))
            await consumer.start()
            while not self._stopping.is_set():
                self._take(await consumer.getmany(timeout_ms=POLL_MS))
                self._look(consumer, following)

    def _following(self) -> of_aiokafka.Following:
        return of_aiokafka.Following(
            cluster="local",
            group_id=self._group,
            control_topic=self._control_topic or "",
            acks_topic=self._acks_topic,
            **self._connection,
        )

    def _look(self, consumer: AIOKafkaConsumer, following: of_aiokafka.Following | None) -> None:
        coordinator = consumer._coordinator
        # The generation of the coordinator runs ahead of the assignment.
        if not consumer._subscription.reassignment_in_progress:
            ours = (
                following is not None and following.assignor._membership.generation == coordinator.generation
            )
            self.assignor = "lagwise" if ours else "range"
            self._see(
                generation=coordinator.generation,
                member_id=coordinator.member_id,
                owned=consumer.assignment(),
            )


class _AiokafkaListener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """Tells a member what its client tells."""

    def __init__(self, member: AiokafkaMember) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Iterable[PartitionKey]) -> None:
        self._member._begin(assigned)

    def on_partitions_revoked(self, revoked: Iterable[PartitionKey]) -> None:
        self._member._end(revoked)


def _attach(entry: Any, consumer: Any) -> None:
    """Assignors of the client know no consumer."""
    if hasattr(entry, "attach"):
        entry.attach(consumer)


def _waiting_in(task: "asyncio.Task[Any]") -> list[str]:
    """Where each coroutine of the task waits, the outermost last."""
    waiting: Any = task.get_coro()
    places = []
    while frame := getattr(waiting, "cr_frame", None):
        places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}")
        waiting = waiting.cr_await
    return places[::-1]
