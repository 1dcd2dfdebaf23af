"""One question about offsets of many partitions (log start, log end), sent to all their leaders at once.

A call of librdkafka's ListOffsets takes time quadratic in its partitions, and it reports a failed leader as offset
-1001 without an error. So each call is small and goes to one leader, all calls are in flight at the same time, and a
negative offset is no answer. Each further offset of a partition is requested after the one before it was answered.

librdkafka 2.16 looks up the leaders of a call in the calling thread, while its own thread runs the timer of the call's
timeout, and both then free the same object: the process crashes. So no call gets a short timeout, and none is about a
partition whose leader the client would have to look up.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias, final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from pipeline import clock
from pipeline.kafka.errors import FORBIDDEN
from pipeline.kafka.list_offsets.leaders import Leaders
from pipeline.kafka.positions import PartitionKey

# Calls of 200 to 1,000 partitions cost the same per partition, calls of 4,000 half as much again.
_CALL_PARTITIONS = 500
# Time of this client per partition, in addition to that of the brokers: about twice the measured time, and a factor
# for a busy machine.
_CLIENT_S_PER_PARTITION = 100e-6
_BUSY = 5
# Time of a leader that did not answer the last question, so that it does not delay every batch.
_SUSPECT_TIMEOUT_S = 1.0
# librdkafka's own timeout of a call is never shorter; the question may abandon the call earlier.
_LEAST_TIMEOUT_S = 5.0
_SETTLED_WITHIN_S = 1.0

Ask: TypeAlias = tuple[OffsetSpec, IsolationLevel]


class LeaderAnswer(NamedTuple):
    """Every requested offset of one partition, or why they are unknown."""

    offsets: tuple[int, ...] | None
    """In the order of the requests, which is ascending."""
    observed_at_ms: int
    error: str | None = None
    refusal: KafkaError | None = None
    """The error, if this user lacks a right."""


class _Failure(NamedTuple):
    why: str
    doubts_leader: bool
    """The leader or its epoch may have changed."""
    may_retry: bool
    refusal: KafkaError | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class _Call:
    """One request to one leader."""

    leader: int
    is_retry: bool
    timeout_s: float
    known: dict[PartitionKey, tuple[int, ...]]
    """Offsets that are known already, as many for each partition."""
    asked_at: float = field(default_factory=time.monotonic)
    futures: dict[PartitionKey, Future[Any]] = field(default_factory=dict)

    @property
    def ends_at(self) -> float:
        """When it is abandoned."""
        return self.asked_at + self.timeout_s


@final
class Question:
    """Asks once; each question needs a new one."""

    def __init__(self, leaders: Leaders, asks: Sequence[Ask], *, timeout_s: float) -> None:
        """Prepare the question without asking; the brokers have `timeout_s` for everything.

        The offsets to request of each partition must not descend.
        """
        self._leaders = leaders
        self._asks = tuple(asks)
        self._timeout_s = timeout_s
        self._ends_at = time.monotonic()
        self._suspects: frozenset[int] = frozenset()
        self._suspect_timeout_s = timeout_s
        self._answers: dict[PartitionKey, LeaderAnswer] = {}
        self._open: set[_Call] = set()
        self._done: SimpleQueue[tuple[_Call, int]] = SimpleQueue()

    def answers(self, wanted: list[PartitionKey]) -> dict[PartitionKey, LeaderAnswer]:
        """An answer for each of `wanted`, after at most `timeout_s` and the time that the client itself needs.

        A leader that does not answer costs only its own partitions.
        """
        client_s = len(wanted) * _CLIENT_S_PER_PARTITION
        self._ends_at = time.monotonic() + self._timeout_s + _BUSY * client_s
        self._suspects = frozenset(self._leaders.silent)
        self._suspect_timeout_s = min(self._timeout_s, _SUSPECT_TIMEOUT_S + client_s)
        try:
            self._leaders.prepare(wanted, timeout_s=self._timeout_s)
        except KafkaException as error:
            return {key: _unanswered(f"leaders are unknown: {error.args[0].str()}") for key in wanted}
        self._ask(wanted, is_retry=False)
        while self._open:
            soonest = min(call.ends_at for call in self._open)
            try:
                call, at_ms = self._done.get(timeout=max(0.0, soonest - time.monotonic()))
            except Empty:
                self._give_up()
                continue
            if call in self._open:
                self._open.remove(call)
                self._take(call, at_ms)
        return self._answers

    def _give_up(self) -> None:
        """Abandon calls whose time is up; librdkafka ends them later."""
        now = time.monotonic()
        for call in [one for one in self._open if one.ends_at <= now]:
            self._open.remove(call)
            self._fail(call, dict.fromkeys(call.futures, self._silence(call)))

    def _left_s(self) -> float:
        return self._ends_at - time.monotonic()

    def _ask(self, keys: list[PartitionKey], *, is_retry: bool) -> None:
        led: dict[int, list[PartitionKey]] = {}
        for key in keys:
            leader = self._leaders.of(key)
            if isinstance(leader, str):
                self._leaders.doubt()
                self._answers[key] = _unanswered(leader)
            else:
                led.setdefault(leader, []).append(key)
        for leader, all_of_it in led.items():
            for begin in range(0, len(all_of_it), _CALL_PARTITIONS):
                share = all_of_it[begin : begin + _CALL_PARTITIONS]
                self._send(dict.fromkeys(share, ()), leader, is_retry=is_retry)

    def _send(self, known: dict[PartitionKey, tuple[int, ...]], leader: int, *, is_retry: bool) -> None:
        allowed_s = self._suspect_timeout_s if leader in self._suspects else self._timeout_s
        call = _Call(leader=leader, is_retry=is_retry, timeout_s=min(allowed_s, self._left_s()), known=known)
        if call.timeout_s <= 0:
            why = f"no time was left to ask {self._leaders.name(leader)}"
            self._fail(call, dict.fromkeys(known, _Failure(why, doubts_leader=False, may_retry=False)))
            return
        last = next(reversed(known))
        spec, isolation = self._asks[len(known[last])]
        try:
            futures = self._leaders.admin.list_offsets(
                {TopicPartition(*key): spec for key in known},
                isolation_level=isolation,
                request_timeout=max(call.timeout_s, _LEAST_TIMEOUT_S),
            )
        except KafkaException as error:
            self._fail(call, dict.fromkeys(known, self._refusal(call, error.args[0])))
            return
        call.futures = {(one.topic, one.partition): future for one, future in futures.items()}
        self._open.add(call)
        # The client settles all futures of a call together, in their order.
        call.futures[last].add_done_callback(partial(self._settled, call))

    def _settled(self, call: _Call, last: Future[Any]) -> None:
        self._done.put((call, clock.now_ms()))
        # A late answer shows that the leader is only slow: it gets its whole time again.
        if last.exception() is None and last.result().offset >= 0:
            self._leaders.silent.discard(call.leader)

    def _take(self, call: _Call, at_ms: int) -> None:
        found: dict[PartitionKey, tuple[int, ...]] = {}
        failed: dict[PartitionKey, _Failure] = {}
        for key, future in call.futures.items():
            offset = self._offset(call, future)
            if isinstance(offset, int):
                found[key] = (*call.known[key], offset)
            else:
                failed[key] = offset
        if found:
            self._leaders.silent.discard(call.leader)
        self._fail(call, failed)
        done = {key: offsets for key, offsets in found.items() if len(offsets) == len(self._asks)}
        self._answers |= {key: _answered(offsets, at_ms) for key, offsets in done.items()}
        if len(done) < len(found):
            self._send(found, call.leader, is_retry=call.is_retry)

    def _offset(self, call: _Call, future: Future[Any]) -> int | _Failure:
        try:
            offset = int(future.result(timeout=_SETTLED_WITHIN_S).offset)
        except KafkaException as error:
            return self._refusal(call, error.args[0])
        except Exception as error:  # noqa: BLE001 - any error of the client goes into the row
            return _Failure(str(error) or type(error).__name__, doubts_leader=True, may_retry=False)
        return offset if offset >= 0 else self._silence(call)

    def _refusal(self, call: _Call, error: KafkaError) -> _Failure:
        if error.code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}:
            return self._silence(call)
        is_refusal = error.code() in FORBIDDEN
        return _Failure(
            f"{error.str()} ({self._leaders.name(call.leader)})",
            doubts_leader=not is_refusal,
            may_retry=not is_refusal,
            refusal=error if is_refusal else None,
        )

    def _silence(self, call: _Call) -> _Failure:
        """Failure of a call without an answer: its time is up, or the client lost the connection."""
        is_late = time.monotonic() >= call.ends_at
        if is_late:
            self._leaders.silent.add(call.leader)
        why = f"{self._leaders.name(call.leader)} does not answer"
        return _Failure(why, doubts_leader=True, may_retry=not is_late)

    def _fail(self, call: _Call, failed: dict[PartitionKey, _Failure]) -> None:
        """Record failures; ask once more where another leader or epoch may answer."""
        if any(failure.doubts_leader for failure in failed.values()):
            self._leaders.doubt()
        may_retry = not call.is_retry and self._left_s() > 0
        again = [key for key, failure in failed.items() if may_retry and failure.may_retry]
        self._answers |= {key: _unanswered(failure.why, failure.refusal) for key, failure in failed.items()}
        if again:
            # Calls from before the listing need no other one.
            if call.asked_at >= self._leaders.listed_at:
                self._leaders.renew(timeout_s=self._left_s() / 2)
            self._ask(again, is_retry=True)


def _answered(offsets: tuple[int, ...], at_ms: int) -> LeaderAnswer:
    for before, after in pairwise(offsets):
        if before > after:
            return _unanswered(
                f"its log was truncated or re-created while it was asked for: offset {before}, then {after}"
            )
    return LeaderAnswer(offsets, at_ms)


def _unanswered(why: str, refusal: KafkaError | None = None) -> LeaderAnswer:
    return LeaderAnswer(None, clock.now_ms(), why, refusal)
