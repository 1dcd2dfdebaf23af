"""Two dozen live consumer groups of all kinds on one broker, under uneven traffic that can be paused."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.support.brokers.broker import admin_client, create_topics
from tests.support.groups.zoo_kinds import KINDS, TOPICS, Commits, Kind
from tests.support.waiting import wait_until

_ROUND_S = 0.2
_TRANSACTION_EVERY = 5
_TIMEOUT_S = 30.0
_WITHIN_S = 120.0
_COMMITS = "committed offsets of every group that commits"

_REBALANCING = (
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TIMED_OUT,
)

Committed = dict[tuple[str, str, int], int]


class _Member:
    """One consumer of one group. Used by one thread at a time.

    Attributes:
        transactions: How many have ended, committed or not.
    """

    def __init__(self, bootstrap: str, kind: Kind, number: int) -> None:
        self._kind = kind
        self._consumer = Consumer(_consumer_config(bootstrap, kind, number))
        self._producer: Producer | None = None
        self.transactions = 0
        self._rounds = 0
        if kind.commits in (Commits.TRANSACTION, Commits.ABORTED):
            name = f"{kind.group_id}-{number}"
            self._producer = Producer(
                {"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0}
            )
            self._producer.init_transactions(_TIMEOUT_S)
        if kind.subscribes:
            self._consumer.subscribe(list(kind.topics))
        else:
            mine = [TopicPartition(topic, p, 0) for topic in kind.topics for p in range(TOPICS[topic])]
            self._consumer.assign(mine)

    def work(self) -> None:
        """Read what one round allows and commit in the way of the group."""
        records = self._consumer.consume(self._kind.take, timeout=0)
        failed = [record.error() for record in records if record.error()]
        assert not failed, failed
        self._rounds += 1
        if records and self._kind.commits is Commits.MANUAL:
            self._consumer.commit(asynchronous=True)
        if self._producer and self._rounds % _TRANSACTION_EVERY == 0:
            self._commit_in_transaction(self._producer)

    def settle(self) -> None:
        """Commit what an automatic commit would bring a moment later."""
        if self._kind.commits in (Commits.AUTO, Commits.MANUAL):
            wait_until(self._has_committed, what=f"a commit of {self._kind.group_id}", within_s=_WITHIN_S)

    def _has_committed(self) -> bool:
        positions = self._positions()
        try:
            if positions:
                self._consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException as failure:
            # A rebalance that is under way on a slow machine ends as the member polls.
            if failure.args[0].code() not in _REBALANCING:
                raise
            self._consumer.poll(0)
            return False
        return True

    def leave(self) -> None:
        """Commit and close."""
        self.settle()
        self._consumer.close()

    def _commit_in_transaction(self, producer: Producer) -> None:
        positions = self._positions()
        if not positions:
            return
        producer.begin_transaction()
        producer.produce("zoo-out", value=b"result", partition=self.transactions % TOPICS["zoo-out"])
        producer.send_offsets_to_transaction(positions, self._consumer.consumer_group_metadata(), _TIMEOUT_S)
        if self._kind.commits is Commits.ABORTED and self.transactions:
            producer.abort_transaction(_TIMEOUT_S)
        else:
            producer.commit_transaction(_TIMEOUT_S)
        self.transactions += 1

    def _positions(self) -> list[TopicPartition]:
        return [tp for tp in self._consumer.position(self._consumer.assignment()) if tp.offset >= 0]


class Zoo:
    """The running groups.

    Attributes:
        kinds: What was started, by group id.
    """

    def __init__(self, bootstrap: str, kinds: Sequence[Kind]) -> None:
        self.kinds = {kind.group_id: kind for kind in kinds}
        self._admin = admin_client(bootstrap)
        self._members = [(kind, _Member(bootstrap, kind, n)) for kind in kinds for n in range(kind.members)]
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
        self._stopping = Event()
        self._failure: BaseException | None = None
        self._traffic = Thread()

    def open(self) -> None:
        """Start the traffic; return when every group is as its kind says, and has committed if it ever does."""
        self._start_thread()
        wait_until(self._all_assigned, what="complete assignments", within_s=_WITHIN_S)
        wait_until(self._all_committed, what=_COMMITS, within_s=_WITHIN_S)
        wait_until(self._some_aborted, what="an aborted transaction", within_s=_WITHIN_S)
        self._stop_thread()
        for kind, member in self._members:
            if kind.leaves:
                member.leave()
        self._members = [(kind, member) for kind, member in self._members if not kind.leaves]
        wait_until(self._leavers_are_gone, what="empty groups", within_s=_WITHIN_S)
        self._start_thread()

    def pause_traffic(self) -> None:
        """Stop producing and reading, for good; return when no committed offset moves any more.

        Members stay in their groups.
        """
        self._stop_thread()
        for _, member in self._members:
            member.settle()
        seen: list[Committed] = [{}]

        def unchanged() -> bool:
            seen.append(self._committed())
            return seen[-1] == seen[-2]

        wait_until(unchanged, what="committed offsets that stay", within_s=_WITHIN_S)

    def close(self) -> None:
        """End everything; groups stay on the broker as they are left."""
        try:
            self._stop_thread()
        finally:
            for _, member in self._members:
                member.leave()

    def _start_thread(self) -> None:
        self._stopping.clear()
        self._traffic = Thread(target=self._run, name="zoo-traffic", daemon=True)
        self._traffic.start()

    def _stop_thread(self) -> None:
        self._stopping.set()
        if self._traffic.is_alive():
            self._traffic.join()
        assert self._producer.flush(_TIMEOUT_S) == 0
        if self._failure:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_ROUND_S):
                self._produce_unevenly()
                for _, member in self._members:
                    member.work()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._failure = error

    def _produce_unevenly(self) -> None:
        for topic, partitions in TOPICS.items():
            # Nobody but transactions writes to this one.
            for partition in range(0 if topic == "zoo-out" else partitions):
                for _ in range(1 + partition % 4 * 2):
                    self._producer.produce(topic, value=b"work", partition=partition)
        self._producer.poll(0)

    def _all_assigned(self) -> bool:
        self._raise_failure()
        joined = [kind for kind in self.kinds.values() if kind.subscribes]
        asked = self._admin.describe_consumer_groups([kind.group_id for kind in joined])
        groups = {group_id: future.result(_TIMEOUT_S) for group_id, future in asked.items()}
        return all(
            groups[kind.group_id].state.name == "STABLE"
            and len(groups[kind.group_id].members) == kind.members
            and sum(len(member.assignment.topic_partitions) for member in groups[kind.group_id].members)
            == kind.partitions
            for kind in joined
        )

    def _all_committed(self) -> bool:
        self._raise_failure()
        committing = {kind.group_id for kind in self.kinds.values() if kind.commits is not Commits.NEVER}
        return committing <= {group_id for group_id, _, _ in self._committed()}

    def _some_aborted(self) -> bool:
        self._raise_failure()
        return all(
            member.transactions > 1 for kind, member in self._members if kind.commits is Commits.ABORTED
        )

    def _leavers_are_gone(self) -> bool:
        leavers = [kind.group_id for kind in self.kinds.values() if kind.leaves]
        asked = self._admin.describe_consumer_groups(leavers)
        return all(future.result(_TIMEOUT_S).state.name == "EMPTY" for future in asked.values())

    def _raise_failure(self) -> None:
        if self._failure:
            raise self._failure

    def _committed(self) -> Committed:
        return {
            (kind.group_id, tp.topic, tp.partition): tp.offset
            for kind in self.kinds.values()
            for tp in _committed_of(self._admin, kind.group_id)
        }


@contextmanager
def zoo(bootstrap: str, kinds: Sequence[Kind] = KINDS) -> Iterator[Zoo]:
    """Groups of these kinds on the broker, with traffic, until the end of the block."""
    create_topics(bootstrap, TOPICS)
    with ExitStack() as cleanup:
        running = Zoo(bootstrap, kinds)
        cleanup.callback(running.close)
        running.open()
        yield running


def _committed_of(admin: AdminClient, group_id: str) -> list[TopicPartition]:
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)])
    return [tp for tp in asked[group_id].result(_TIMEOUT_S).topic_partitions if tp.offset >= 0]


def _consumer_config(bootstrap: str, kind: Kind, number: int) -> dict[str, str | int]:
    name = f"{kind.group_id}-{number}"
    return {
        "bootstrap.servers": bootstrap,
        "group.id": kind.group_id,
        "client.id": f"client-{name}",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 300,
        "enable.auto.commit": "true" if kind.commits is Commits.AUTO else "false",
        # The pause may last as long as a test wants.
        "max.poll.interval.ms": 3_600_000,
        "queued.min.messages": 100,
        "log_level": 0,
        **({"group.instance.id": name} if kind.static else {}),
        **kind.config,
    }
