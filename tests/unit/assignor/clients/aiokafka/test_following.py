"""`Following` of aiokafka on fakes of its reader and its writer: what it says, that it goes on, and that it ends."""

import asyncio
import inspect
import json
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError, TopicAuthorizationFailedError

from assignor.clients.aiokafka import Following, FollowingMisusedError, background
from assignor.clients.plugin.user_data import AssignmentData, Outcome, encode_assignment_data
from assignor.protocol import acks, control
from assignor.protocol.acks import AnyAck, Applied
from tests.support.followers.plans import plan

APPLIED = encode_assignment_data(AssignmentData(epoch=3, outcome=Outcome.APPLIED))


class QuietReader:
    """A control topic, at first without records."""

    made: ClassVar[int] = 0
    failing: ClassVar[list[BaseException]] = []
    """What reading raises, the first time, the second, and so on."""
    records: ClassVar[list[Any]] = []
    settings: ClassVar[dict[str, Any]] = {}
    """Of the newest one."""
    __signature__ = inspect.signature(AIOKafkaConsumer)

    def __init__(self, **settings: Any) -> None:
        self.stopped = False
        QuietReader.settings = settings
        QuietReader.made += 1

    async def topics(self) -> set[str]:
        return {"lagwise.assignments"}

    def subscribe(self, _topics: list[str]) -> None: ...

    def assignment(self) -> set[int]:
        return {0}

    async def end_offsets(self, _partitions: list[int]) -> dict[int, int]:
        return {0: 5}

    async def position(self, _partition: int) -> int:
        return 5

    async def start(self) -> None: ...

    async def stop(self) -> None:
        self.stopped = True

    async def getmany(self, *, timeout_ms: int) -> dict[str, Any]:
        del timeout_ms
        if QuietReader.failing:
            raise QuietReader.failing.pop(0)
        await asyncio.sleep(0.001)
        polled, QuietReader.records = QuietReader.records, []
        return {"t-0": polled}


class Writer:
    """A producer that keeps what it is to send, or cannot send."""

    sent: ClassVar[list[AnyAck]] = []
    fails: ClassVar[bool] = False
    stopped: ClassVar[int] = 0
    __signature__ = inspect.signature(AIOKafkaProducer)

    def __init__(self, **settings: Any) -> None:
        inspect.signature(AIOKafkaProducer).bind(**settings)

    async def start(self) -> None: ...

    async def stop(self) -> None:
        Writer.stopped += 1
        if self.fails:
            raise KafkaConnectionError

    async def send_and_wait(self, topic: str, *, key: bytes, value: bytes, partition: int) -> None:
        assert (topic, partition) == ("acks", 0)
        if self.fails:
            raise KafkaTimeoutError
        self.sent.append(acks.decode(key, value))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[AnyAck]:
    monkeypatch.setattr(background, "AIOKafkaConsumer", QuietReader)
    monkeypatch.setattr(background, "AIOKafkaProducer", Writer)
    monkeypatch.setattr(background, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(background, "RETRY_AFTER_S", 0.01)
    monkeypatch.setattr(background, "FIRST_PROBE_AFTER_S", 0.05)
    monkeypatch.setattr(QuietReader, "made", 0)
    monkeypatch.setattr(QuietReader, "failing", [])
    monkeypatch.setattr(QuietReader, "records", [])
    monkeypatch.setattr(QuietReader, "settings", {})
    monkeypatch.setattr(Writer, "sent", [])
    monkeypatch.setattr(Writer, "stopped", 0)
    return Writer.sent


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.001)


async def applied(is_done: Callable[[], object] = lambda: True, **settings: Any) -> None:
    """A member whose leader applies plan 3, until that is acknowledged, and something else is done."""
    async with Following(cluster="local", group_id="g", fetch_min_bytes=1, **settings) as following:
        coordinator = SimpleNamespace(generation=8, member_id="m", _performed_join_prepare=True)
        following.attach(SimpleNamespace(_coordinator=coordinator))
        following.assignor.on_assignment(ConsumerProtocolMemberAssignment(0, [("t", [1])], APPLIED))
        await until(lambda: not following.assignor.acks and is_done())


def test_following_acknowledges_what_became_of_the_plan(sent: list[AnyAck]) -> None:
    asyncio.run(applied(acks_topic="acks"))

    assert [(type(ack), ack.member, ack.epoch, ack.generation) for ack in sent] == [(Applied, "m", 3, 8)]


def test_following_without_an_acks_topic_says_nothing(sent: list[AnyAck]) -> None:
    asyncio.run(applied(acks_topic=None))

    assert sent == []


def test_acknowledgement_that_cannot_be_sent_does_not_end_the_following(
    sent: list[AnyAck], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Writer, "fails", True)

    asyncio.run(applied(lambda: caplog.records, acks_topic="acks"))

    assert (sent, Writer.stopped, len(caplog.records)) == ([], 1, 1)
    assert "an acknowledgement cannot be sent" in caplog.text


@pytest.mark.parametrize("error", [KafkaConnectionError(), ZeroDivisionError(), asyncio.CancelledError()])
def test_reader_that_fails_is_told_once_and_begins_anew(
    sent: list[AnyAck], caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    """The client cancels what waits for a connection that breaks."""
    QuietReader.failing.extend([error] * 3)

    async def scenario() -> None:
        async with Following(cluster="local", group_id="g"):
            await until(lambda: "resolved" in caplog.text)

    with caplog.at_level(logging.INFO, logger="assignor"):
        asyncio.run(asyncio.wait_for(scenario(), timeout=5))

    assert QuietReader.made == 4
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert sent == []


def test_topic_that_may_be_described_and_not_read_is_told_once(
    sent: list[AnyAck], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The refusal comes with the answer to the first fetch, which is later than the first answer about the end."""

    async def refused(_: QuietReader, *, timeout_ms: int) -> dict[str, Any]:
        del timeout_ms
        polls.append(QuietReader.made)
        if polls.count(QuietReader.made) > 2:
            raise TopicAuthorizationFailedError
        return {}

    async def scenario() -> None:
        async with Following(cluster="local", group_id="g"):
            await until(lambda: QuietReader.made > 5)

    polls: list[int] = []
    monkeypatch.setattr(QuietReader, "getmany", refused)
    with caplog.at_level(logging.INFO, logger="assignor"):
        asyncio.run(asyncio.wait_for(scenario(), timeout=5))

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert sent == []


def test_following_is_entered_where_no_broker_answers(
    sent: list[AnyAck], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def unreachable(_: QuietReader) -> None:
        raise KafkaConnectionError

    async def scenario() -> None:
        async with Following(cluster="local", group_id="g"):
            await until(lambda: QuietReader.made > 2)

    monkeypatch.setattr(QuietReader, "start", unreachable)

    asyncio.run(asyncio.wait_for(scenario(), timeout=5))

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert sent == []


def test_reader_of_plans_reads_bytes_where_its_consumer_deserializes(sent: list[AnyAck]) -> None:
    theirs = {"key_deserializer": bytes.decode, "value_deserializer": json.loads}

    asyncio.run(applied(lambda: QuietReader.made, acks_topic="acks", **theirs))

    assert [QuietReader.settings[name] for name in theirs] == [None, None]
    assert len(sent) == 1


def test_following_is_not_entered_twice_at_a_time(sent: list[AnyAck]) -> None:
    async def scenario() -> None:
        async with Following(cluster="local", group_id="g") as following:
            tasks = list(following._background._tasks)
            with pytest.raises(FollowingMisusedError, match="create a Following for each consumer"):
                await following.__aenter__()
        assert all(task.done() for task in tasks)

    asyncio.run(scenario())

    assert sent == []


def test_member_that_joins_before_its_following_is_entered_is_warned_once(
    sent: list[AnyAck], caplog: pytest.LogCaptureFixture
) -> None:
    def joins() -> bool:
        return following.assignor.metadata(["t"]).version == 0

    async def scenario() -> None:
        consumer = SimpleNamespace(_coordinator=SimpleNamespace(_perform_assignment=None))
        following.attach(consumer)
        assert joins()
        assert joins()
        async with following:
            assert joins()
        # Its consumer may still be about to stop.
        assert joins()
        with pytest.raises(FollowingMisusedError, match="create a Following for each consumer"):
            following.attach(consumer)
        warnings = [record for record in caplog.records if "is entered" in record.getMessage()]
        assert len(warnings) == 1

    following = Following(cluster="local", group_id="g")
    asyncio.run(scenario())

    assert sent == []


def test_setting_that_no_consumer_has_is_refused() -> None:
    with pytest.raises(TypeError, match="unheard_of"):
        Following(cluster="local", group_id="g", unheard_of=1)


@pytest.mark.parametrize("has_requested", [True, False], ids=["about to join", "in a join"])
def test_plan_that_is_read_while_the_member_joins_asks_for_no_other_rebalance(
    sent: list[AnyAck], has_requested: bool
) -> None:
    """The leader of the join has the plan, or asks when it has: each member that came late made one more rebalance."""
    asked: list[str] = []

    async def scenario() -> list[str]:
        needed = asyncio.get_running_loop().create_future()
        coordinator = SimpleNamespace(
            generation=7,
            member_id="a",
            request_rejoin=lambda: asked.append("rejoin"),
            _rejoin_needed_fut=needed,
            _performed_join_prepare=not has_requested,
        )
        if has_requested:
            needed.set_result(None)
        async with Following(cluster="local", group_id="g", acks_topic=None) as following:
            following.attach(SimpleNamespace(_coordinator=coordinator))
            following.assignor.on_assignment(ConsumerProtocolMemberAssignment(0, [("t", [1])], b""))
            record = plan({"a": {"t": (1,)}}, {"a": {}, "b": {"t": (1,)}}, epoch=3, generation=7)
            key, value = control.encode_key("local", "g"), control.encode(record)
            QuietReader.records = [SimpleNamespace(key=key, value=value, headers=[])]
            await until(lambda: following._background._state.epoch == 3)
            await asyncio.sleep(0.05)
            before = list(asked)
            coordinator._performed_join_prepare = False
            coordinator._rejoin_needed_fut = asyncio.get_running_loop().create_future()
            await until(lambda: bool(asked))
        return before

    assert asyncio.run(asyncio.wait_for(scenario(), timeout=5)) == []
    assert sent == []


def test_rebalance_that_cannot_be_asked_for_is_told_once_and_tried_again(
    sent: list[AnyAck], caplog: pytest.LogCaptureFixture
) -> None:
    looked = 0

    def look() -> None:
        nonlocal looked
        looked += 1
        if looked <= 3:
            raise AttributeError("another version of the client")

    async def scenario() -> None:
        following = Following(cluster="local", group_id="g", acks_topic=None)
        following._background._look = look
        async with following:
            await until(lambda: "resolved" in caplog.text)

    with caplog.at_level(logging.INFO, logger="assignor"):
        asyncio.run(asyncio.wait_for(scenario(), timeout=5))

    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "cannot be asked to rebalance" in caplog.text
    assert sent == []


def test_cancellation_of_the_caller_is_not_swallowed(sent: list[AnyAck]) -> None:
    async def cancelled_while_leaving() -> bool:
        task = asyncio.create_task(applied(acks_topic="acks"))
        await until(lambda: bool(sent))
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled_while_leaving())


def test_producer_is_stopped_also_if_the_caller_is_cancelled_as_it_waits_for_the_reader(
    sent: list[AnyAck], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(_: QuietReader) -> None:
        await asyncio.sleep(0.1)

    async def cancelled_twice() -> None:
        task = asyncio.create_task(applied(lambda: False, acks_topic="acks"))
        await until(lambda: bool(sent))
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.02)
        assert task.cancelled()
        await until(lambda: Writer.stopped == 1)

    monkeypatch.setattr(QuietReader, "stop", slowly)
    asyncio.run(asyncio.wait_for(cancelled_twice(), timeout=5))


@pytest.mark.usefixtures("sent")
@pytest.mark.parametrize("client", [QuietReader, Writer])
def test_client_that_failed_is_stopped_to_its_end_also_if_the_following_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch, client: type[Any]
) -> None:
    begun: list[type[Any]] = []
    ended: list[type[Any]] = []

    async def slowly(_: object) -> None:
        begun.append(client)
        await asyncio.sleep(0.1)
        ended.append(client)

    async def left_while_it_stops() -> None:
        task = asyncio.create_task(applied(lambda: False, acks_topic="acks"))
        await until(lambda: bool(begun))
        task.cancel()
        await asyncio.wait([task])

    monkeypatch.setattr(QuietReader, "failing", [KafkaConnectionError()] if client is QuietReader else [])
    monkeypatch.setattr(Writer, "fails", client is Writer)
    monkeypatch.setattr(client, "stop", slowly)
    asyncio.run(asyncio.wait_for(left_while_it_stops(), timeout=5))

    assert begun == ended == [client]


def test_reader_whose_broker_falls_silent_begins_anew(
    sent: list[AnyAck], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def silent(*_: object) -> dict[int, int]:
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario() -> None:
        async with Following(cluster="local", group_id="g"):
            await until(lambda: QuietReader.made > 1)

    monkeypatch.setattr(QuietReader, "end_offsets", silent)
    monkeypatch.setattr(background, "_ANSWER_WITHIN_S", 0.01)

    asyncio.run(asyncio.wait_for(scenario(), timeout=5))

    assert "TimeoutError" in caplog.records[0].__dict__["problem"]
    assert sent == []
