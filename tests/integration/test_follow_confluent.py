"""Groups of confluent-kafka followers on a real broker."""

import logging
import signal
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from assignor.clients.confluent import Follower, NotOwnedError, TransactionsUnsupportedError
from assignor.clients.confluent.group import generation_of
from assignor.protocol.acks import Applied, Follows, Refused, Release, Taken, Void
from assignor.protocol.kafka.group_metadata import decode_group_metadata
from assignor.protocol.kafka.offsets import group_id_of, record_type_of
from assignor.protocol.kafka.record_types import RecordType
from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import OFFSETS_PARTITIONS, OFFSETS_TOPIC, create_topics
from tests.support.followers.follow_plans import one_moved
from tests.support.followers.follow_processes import Processes
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

PLANS = 12


def rotated(base: dict[str, list[int]]) -> dict[str, list[int]]:
    """Every partition goes to the next member."""
    names = sorted(base)
    return {name: base[names[number - 1]] for number, name in enumerate(names)}


def test_plan_is_applied_by_all_without_a_rebalance_a_loss_or_a_repetition(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "apply", tmp_path) as processes:
        for who in "abc":
            processes.start(who)
        generation, _, base = processes.base(3)
        took_ms = []
        places = base
        for _ in range(PLANS):
            places = rotated(places)
            published_ms = time.time() * 1000
            epoch = processes.publish(generation, base, places)
            processes.wait_for_acks(Applied, epoch, 3)
            applied = [a.at_ms for a in processes.all_acks() if isinstance(a, Applied) and a.epoch == epoch]
            took_ms.append(max(applied) - published_ms)

        processes.finish()

        log.info("from publication to applied by all: %s ms", sorted(round(ms) for ms in took_ms))
        said = processes.all_acks()
        assert {ack.generation for ack in said} == {generation}
        assert not any(isinstance(ack, Void) for ack in said if ack.epoch < epoch)
        assert len({a for a in said if isinstance(a, Release)}) == PLANS * processes.partitions
        assert max(took_ms) < 3000
        assert processes.missing() == []
        assert processes.repeated() == 0
        assert processes.overlaps() == []


def test_users_who_process_in_other_threads_lose_and_repeat_nothing(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "pool", tmp_path) as processes:
        for who in "abc":
            processes.start(who, pool="yes")
        generation, _, base = processes.base(3)
        places = base
        for _ in range(4):
            places = rotated(places)
            epoch = processes.publish(generation, base, places)
            processes.wait_for_acks(Applied, epoch, 3)

        processes.finish()

        assert processes.missing() == []
        assert processes.repeated() == 0
        assert processes.strays() == []
        assert processes.overlaps() == []


@pytest.mark.parametrize(
    ("hurt", "point"),
    [
        # `make fault` has every state with both signals.
        ("old_owner", "stopped:KILL"),
        ("new_owner", "offered:STOP"),
    ],
)
def test_member_hurt_in_a_hand_over_loses_nothing(
    broker: EmbeddedBroker, tmp_path: Path, hurt: str, point: str
) -> None:
    name = point.replace(":", "-").lower()
    with Processes(broker.bootstrap_servers, name, tmp_path, partitions=3) as processes:
        processes.start("a", hurt=point)
        processes.start("b")
        processes.start("c")
        generation, ids, base = processes.base(3)
        other = "b" if base[ids["b"]] else "c"
        old_owner, new_owner = ("a", other) if hurt == "old_owner" else (other, "a")

        processes.publish(generation, base, one_moved(base, ids[old_owner], ids[new_owner]))
        wait_until(lambda: processes.count("hurt"), what="the hurt")
        stopped = point.endswith("STOP")
        if stopped:
            processes.base(2, after=generation)
            processes.send("a", signal.SIGCONT)
        after, _, _ = processes.base(3 if stopped else 2, after=generation)
        processes.finish()

        assert after > generation
        assert processes.missing() == []
        assert processes.overlaps() == []


def test_rebalance_voids_the_plan_and_the_next_one_is_followed(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with Processes(broker.bootstrap_servers, "rebalance", tmp_path) as processes:
        processes.start("a")
        processes.start("b")
        generation, _, base = processes.base(2)
        first = processes.publish(generation, base, rotated(base))
        processes.wait_for_acks(Applied, first, 2)

        processes.start("c")
        later, _, new_base = processes.base(3, after=generation)
        second = processes.publish(later, new_base, rotated(new_base))
        processes.wait_for_acks(Applied, second, 3)
        processes.finish()

        voids = {ack.why for ack in processes.all_acks() if isinstance(ack, Void) and ack.epoch == first}
        assert voids == {"revoked"}
        stale = {ack.why for ack in processes.all_acks() if isinstance(ack, Refused)}
        assert stale <= {"made for another generation"}
        assert processes.missing() == []
        assert processes.overlaps() == []


def test_nothing_is_given_while_one_member_of_the_plan_has_not_heard_of_it(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    create_topics(broker.bootstrap_servers, {"mixed-silence": 1})
    with Processes(broker.bootstrap_servers, "mixed", tmp_path) as processes:
        processes.start("a")
        processes.start("b")
        processes.start("c", control="mixed-silence")
        generation, ids, base = processes.base(3)
        swapped = {ids["a"]: base[ids["b"]], ids["b"]: base[ids["c"]], ids["c"]: base[ids["a"]]}

        whole = processes.publish(generation, base, swapped, valid_s=5.0)
        processes.wait_for_acks(Follows, whole, 2)
        processes.wait_for_acks(Void, whole, 2)
        without_c = processes.publish(generation, base, one_moved(base, ids["a"], ids["b"]))
        processes.wait_for_acks(Applied, without_c, 2)
        processes.finish()

        released = {
            (ack.epoch, ack.member, ack.to) for ack in processes.all_acks() if isinstance(ack, Release)
        }
        assert released == {(without_c, ids["a"], ids["b"])}
        assert processes.missing() == []
        assert processes.overlaps() == []


def test_static_member_stays_on_its_base_and_says_why(broker: EmbeddedBroker, tmp_path: Path) -> None:
    with Processes(broker.bootstrap_servers, "static", tmp_path, partitions=2) as processes:
        processes.start("a", config={"group.instance.id": "a"})
        processes.start("b")
        generation, ids, base = processes.base(2)

        epoch = processes.publish(generation, base, rotated(base))
        processes.wait_for_acks(Refused, epoch, 1)
        processes.wait_for_acks(Follows, epoch, 1)
        processes.finish()

        said = processes.all_acks()
        assert {(a.member, a.why) for a in said if isinstance(a, Refused)} == {(ids["a"], "static")}
        assert not [ack for ack in said if isinstance(ack, Release | Taken)]
        assert processes.missing() == []


def test_lone_follower_is_a_plain_consumer(broker: EmbeddedBroker, tmp_path: Path) -> None:
    with Processes(broker.bootstrap_servers, "lone", tmp_path, partitions=2) as processes:
        config = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": processes.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        topics = {"control_topic": processes.control, "acks_topic": processes.acks}
        with Follower(config, [processes.topic], **topics) as follower:
            with pytest.raises(NotOwnedError):
                follower.commit()
            wait_until(lambda: follower.poll(0.2), what="a first message")
            messages = follower.consume(10, 5)
            committed = follower.commit(messages[-1], asynchronous=False)

            assert committed is not None
            assert committed[0].offset == messages[-1].offset() + 1
            assert [p.partition for p in follower.assignment()] == [0, 1]
            with pytest.raises(TransactionsUnsupportedError):
                follower.consumer_group_metadata()
            follower.commit(asynchronous=False)
        assert follower.assignment() == []


def stored_generation(bootstrap: str, group: str) -> int | None:
    """Generation in the newest metadata record of the group."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    newest = None
    try:
        for number in range(OFFSETS_PARTITIONS):
            place = TopicPartition(OFFSETS_TOPIC, number, 0)
            end = reader.get_watermark_offsets(place, timeout=10)[1]
            reader.assign([place])
            for message in reader.consume(end, 2) if end else []:
                key, value = message.key() or b"", message.value()
                if value and record_type_of(key) == RecordType.GROUP_METADATA and group_id_of(key) == group:
                    newest = decode_group_metadata(value).generation
    finally:
        reader.close()
    return newest


def test_generation_of_a_member_is_the_one_that_the_broker_has_stored(broker: EmbeddedBroker) -> None:
    bootstrap, group = broker.bootstrap_servers, "generation-group"
    create_topics(bootstrap, {"generation-topic": 1})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        consumer.subscribe(["generation-topic"])
        wait_until(lambda: consumer.poll(0.1) or consumer.assignment(), what="an assignment")

        generation = generation_of(consumer.consumer_group_metadata())

        assert generation > 0
        wait_until(lambda: stored_generation(bootstrap, group) == generation, what=f"{generation} stored")
    finally:
        consumer.close()
