"""Publish: sends what a batch wrote into `plan_state`, as read back, to the compacted control topic.

The table is the outbox: what is sent late has the same bytes under the same epoch. The producer is
transactional under one id per cluster, so the broker itself fences a driver that has been replaced, and
readers see all plans of a batch or none. A driver that publishes for no group leaves that id alone (`claim`).
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeAlias

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from assignor.errors import DecodeError
from assignor.protocol import control
from assignor.protocol.instants import parse_instant
from assignor.protocol.json_fields import parse_fields
from pipeline.errors import (
    BrokerUnavailableError,
    FencedError,
    PipelineError,
    PublishError,
    TopicMissingError,
)
from pipeline.kafka.errors import FENCED, error_of_call, explained, unusable
from pipeline.kafka.tokens import ready
from pipeline.planning.memory import PlanInTopic, PlanRecord
from pipeline.publish.claim import GROUP, Claim, decode, key_of

log = logging.getLogger(__name__)

_ATTEMPTS = 3
_TRY_EVERY_S = 30.0
# Every epoch up to this one has a successor that fits a column. No lagwise writes a larger one.
_LARGEST_EPOCH = 2**53
# It joins no group, and still asks for the coordinator of this one.
_READER = "lagwise-control-reader"


PlansInTopic: TypeAlias = Callable[[], Mapping[str, PlanInTopic]]
"""Reads the control topic; gives the newest plan of each group."""
OnConnected: TypeAlias = Callable[[PlansInTopic], None]
"""Learns what is on the topic."""


class Publisher:
    """One transactional producer for the life of the driver.

    If the leader of the control topic or the transaction coordinator is unavailable, the stream continues without
    plans, and `unavailable` retries from time to time.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        topic: str,
        cluster: str,
        timeout_s: float,
        claim: Claim | None = None,
        is_dry: bool = False,
        takes_over: bool = False,
    ) -> None:
        """Nothing is contacted before `unavailable`.

        Args:
            properties: Of librdkafka, secrets resolved.
            topic: Control topic.
            cluster: Name of the cluster.
            timeout_s: Of each call.
            claim: Claim of this publisher; without one, claims are neither written nor checked.
            is_dry: No group may publish plans: the producer of another driver is left alone until there is
                something to send, which can only concern what these tables have published before.
            takes_over: Publish even if a driver of other tables does.
        """
        self.claim = claim
        self.is_dry = is_dry
        self.takes_over = takes_over
        self._is_read = False
        self.topic = topic
        self.cluster = cluster
        self.timeout_s = timeout_s
        self._properties = dict(properties)
        self._producer: Producer | None = None
        self._why = ""
        self._tried_at_s = -_TRY_EVERY_S

    def unavailable(self, on_connected: OnConnected) -> str | None:
        """Return why no plan can be published now; None if one can.

        The first call that succeeds fences the producer of an earlier driver.

        Args:
            on_connected: Called with each new connection; unless this driver is dry, no other one can write to the
                topic by then.

        Raises:
            AccessRefusedError: This user may not use the transactional id, or read the topic.
            TopicMissingError: The control topic is gone.
            FencedError: A driver of other tables publishes for the cluster.
        """
        if self._is_ready:
            return None
        if time.monotonic() - self._tried_at_s >= _TRY_EVERY_S:
            self._tried_at_s = time.monotonic()
            try:
                self._connect(on_connected)
            except TopicMissingError:
                raise
            except BrokerUnavailableError as error:
                self._failed(error)
        return None if self._is_ready else f"plans cannot be published now: {self._why}"

    def _failed(self, error: BrokerUnavailableError) -> None:
        """Say why nothing can be sent, and try again half a minute after this, however long it took."""
        self._why, self._tried_at_s = str(error), time.monotonic()
        log.warning("plans cannot be published now", extra={"error": self._why})

    @property
    def _is_ready(self) -> bool:
        return self._producer is not None or self._is_read

    def _connect(self, on_connected: OnConnected) -> None:
        if self.is_dry:
            on_connected(self._plans_in_topic)
            self._is_read, self._tried_at_s = True, -_TRY_EVERY_S
        else:
            self._refuse_other()
            self._open(on_connected)

    def _open(self, on_connected: OnConnected) -> None:
        properties = _producer_properties(self._properties, self.cluster)
        with explained(f"transactional id {properties['transactional.id']} cannot be used"):
            producer = Producer(ready(properties), logger=log)
            producer.init_transactions(self.timeout_s)
        # Another driver may have come between the look and the fence; it finds out, and nobody publishes.
        self._refuse_other()
        on_connected(self._plans_in_topic)
        self._producer = producer
        if self.claim is not None:
            self._send([PlanRecord(GROUP, 0, self.claim.encode())])

    def publish(self, records: Sequence[PlanRecord]) -> bool:
        """Send the plans of one batch in one transaction; without any, nothing is needed.

        Returns:
            True once they are sent; False if this driver is dry and a driver of other tables publishes.

        Raises:
            FencedError: Another driver has taken over.
            AccessRefusedError: This user may not write to the topic.
            BrokerUnavailableError: The broker did not take the records. The topic is read again before the next ones.
            PublishError: The broker will never take a record: it is larger than the topic allows.
        """
        if not records:
            return True
        if self._producer is None and self._is_read and not self._has_opened_dry(records):
            return False
        if self._producer is None:
            # The connection broke, or there has been none yet.
            raise BrokerUnavailableError(self._why or "the control topic has not been read yet")
        try:
            self._send(records)
        except BrokerUnavailableError as error:
            self._failed(error)
            raise
        return True

    def _has_opened_dry(self, records: Sequence[PlanRecord]) -> bool:
        """Open the producer of a dry driver, which has something to send after all, unless another one publishes."""
        if time.monotonic() - self._tried_at_s < _TRY_EVERY_S:
            raise BrokerUnavailableError(self._why)
        self._tried_at_s = time.monotonic()
        try:
            if (other := self._other()) is None:
                self._open(lambda _plans: None)
                return True
        except BrokerUnavailableError as error:
            self._failed(error)
            raise
        # The next one is not to wait.
        self._tried_at_s = -_TRY_EVERY_S
        log.warning(
            "plans in these tables are not sent: another driver publishes for the cluster",
            extra={"plans": len(records), "publisher": other.owner, "tables_root": other.root},
        )
        return False

    def _send(self, records: Sequence[PlanRecord]) -> None:
        try:
            self._transact(records)
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() in FENCED:
                raise FencedError(self._fenced_by(error)) from failure
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise PublishError(
                    f"control topic {self.topic} rejects a record of {_largest(records)} bytes: raise its "
                    "max.message.bytes, set control.max_record_bytes below that, then start again"
                ) from failure
            # The next producer begins by aborting what this one has left open.
            self._producer = None
            raise error_of_call(f"plans could not be published on topic {self.topic}", error) from failure

    def _transact(self, records: Sequence[PlanRecord]) -> None:
        producer = self._producer
        if producer is None:
            raise AssertionError("unavailable() comes first")
        producer.begin_transaction()
        for group_id, epoch, value in records:
            producer.produce(
                self.topic,
                key=control.encode_key(self.cluster, group_id),
                # No value withdraws the plan.
                value=None if value is None else value.encode(),
                headers=list(control.headers(epoch)),
            )
            producer.poll(0)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                producer.commit_transaction(self.timeout_s)
            except KafkaException as failure:
                if attempt == _ATTEMPTS or not failure.args[0].retriable():
                    raise
                log.warning("publishing again", extra={"attempt": attempt, "error": failure.args[0].str()})
            else:
                return

    def _other(self) -> Claim | None:
        """The driver of other tables that publishes, if there is one."""
        if self.claim is None or self.takes_over:
            return None
        found = self._claim_in_topic()
        return None if found is None or found.is_of_same_tables(self.claim) else found

    def _refuse_other(self) -> None:
        other = self._other()
        if other is not None:
            raise FencedError(
                f"driver {other.owner} publishes plans for cluster {self.cluster}, from the tables under "
                f"{other.root} "
                f"of host {other.host}; this one does not start alongside it: set plan.dry_run = true for a trial, "
                "or stop that driver and start this one with --take-over"
            )

    def _fenced_by(self, error: KafkaError) -> str:
        """Who publishes now, as far as the control topic tells."""
        try:
            found = self._claim_in_topic()
        except (KafkaException, PipelineError):
            found = None
        if found is None or found == self.claim:
            return (
                f"another driver publishes for cluster {self.cluster} now ({error.str()}), and has not published its "
                f"name yet; this one stops: look for a driver with transactional id lagwise-{self.cluster}"
            )
        return (
            f"driver {found.owner} publishes for cluster {self.cluster} now, from the tables under {found.root} of "
            f"host {found.host}; this one stops: run one publishing driver per Kafka cluster"
        )

    def _claim_in_topic(self) -> Claim | None:
        """The newest claim for this cluster."""
        newest: Claim | None = None
        with self._reader() as reader:
            for message in _messages(reader, self.topic, self.timeout_s):
                if message.key() == key_of(self.cluster):
                    newest = decode(message.value())
        return newest

    def _plans_in_topic(self) -> dict[str, PlanInTopic]:
        """Newest plan of each of this cluster's groups in the control topic, read from its start to its end."""
        with self._reader() as reader:
            return _read_plans(reader, self.topic, self.cluster, self.timeout_s)

    @contextmanager
    def _reader(self) -> Iterator[Consumer]:
        properties = {
            **self._properties,
            "group.id": _READER,
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
        }
        with (
            explained(f"control topic {self.topic} could not be read as group {_READER}"),
            closing(Consumer(ready(properties), logger=log)) as reader,
        ):
            yield reader


def _largest(records: Sequence[PlanRecord]) -> int:
    return max(len((record.value or "").encode()) for record in records)


def _producer_properties(properties: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    return {
        **properties,
        "transactional.id": f"lagwise-{cluster}",
        # librdkafka refuses a request that may outlive its transaction.
        "transaction.timeout.ms": str(max(60_000, int(properties.get("socket.timeout.ms", "0")))),
        # A plan is written down only if it is no larger than control.max_record_bytes. A limit of the client's
        # own, which counts key and headers too, would refuse it afterwards, and again at every start.
        "message.max.bytes": "1000000000",
    }


def _read_plans(reader: Consumer, topic: str, cluster: str, timeout_s: float) -> dict[str, PlanInTopic]:
    plans: dict[str, PlanInTopic] = {}
    for message in _messages(reader, topic, timeout_s):
        if message.key() != key_of(cluster):
            _note_plan(message, cluster, plans)
    return plans


def _messages(reader: Consumer, topic: str, timeout_s: float) -> Iterator[Message]:
    """Every record of the topic, from its start to its end."""
    listed = reader.list_topics(topic, timeout=timeout_s).topics[topic]
    if listed.error is not None:
        # It has no partitions then, and epochs would begin again.
        raise unusable(topic, listed.error)
    numbers = listed.partitions
    reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
    unfinished = set(numbers)
    deadline = time.monotonic() + timeout_s
    while unfinished:
        message = reader.poll(0.2)
        if message is None:
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    f"control topic {topic} could not be read to its end in {timeout_s:g} s"
                )
            continue
        deadline = time.monotonic() + timeout_s
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            unfinished.discard(message.partition())
        elif error is not None:
            raise KafkaException(error)
        else:
            yield message


def _note_plan(message: Message, cluster: str, plans: dict[str, PlanInTopic]) -> None:
    key, headers = message.key(), message.headers()
    # The epoch also stands in a header so that it survives in withdrawals and in values from other versions.
    try:
        named, group_id = control.decode_key(key or b"")
        epoch = int(dict(headers or []).get("epoch") or b"0")
    except (DecodeError, ValueError):
        epoch = -1
    if not 0 <= epoch <= _LARGEST_EPOCH:
        log.warning("a record on the control topic is not lagwise's", extra={"key": repr(key)})
        return
    if named == cluster and epoch >= plans.get(group_id, PlanInTopic()).epoch:
        plans[group_id] = PlanInTopic(epoch, _valid_until_ms(message.value()))


def _valid_until_ms(value: bytes | None) -> int:
    """Validity of the plan in a value; 0 without a plan, and where a reader finds none either."""
    try:
        return parse_instant(parse_fields(value).text("valid_until")) if value else 0
    except DecodeError:
        return 0
