"""KIP-848 groups of a live broker against Kafka's own tool, while members join, leave, are busy and are killed."""

import logging
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.operate.listings.groups import assignment_text
from tests.support.brokers import kafka_tools
from tests.support.brokers.broker import admin_client, create_offsets_topic, create_topics, small_broker
from tests.support.brokers.group_log import GroupLog
from tests.support.groups.kip848_member import Member
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

TOPICS = {"crabs": 7, "clams": 4}
SESSION_MS = 3000


@pytest.fixture(scope="module")
def kip848_broker() -> Iterator[EmbeddedBroker]:
    with small_broker(
        group_consumer_session_timeout_ms=str(SESSION_MS), group_consumer_migration_policy="bidirectional"
    ) as running:
        create_offsets_topic(running.bootstrap_servers)
        create_topics(running.bootstrap_servers, TOPICS)
        yield running


class Scene:
    """A group, its members, and the table of groups."""

    def __init__(self, bootstrap: str, group: str, folder: Path) -> None:
        self.members: dict[str, Member] = {}
        self.bootstrap, self.group, self._folder = bootstrap, group, folder
        self.log = GroupLog(bootstrap)
        self.seen_states: set[str | None] = set()

    def join(self, name: str, *subscription: str, **properties: Any) -> None:
        given = {"client.id": name, **{key.replace("_", "."): value for key, value in properties.items()}}
        busy = self._folder / f"busy-{name}"
        self.members[name] = Member(self.bootstrap, self.group, list(subscription), busy, **given)

    def row(self) -> dict[str, Any] | None:
        """The group as the table has it now."""
        self.log.read_on()
        rows = self.log.groups.table.to_pylist(maps_as_pydicts="strict")
        return next((row for row in rows if row["group_id"] == self.group), None)

    def is_settled(self, count: int) -> bool:
        row = self.row()
        return row is not None and len(row["members"] or ()) == count and row["state"] in ("Stable", "Empty")

    def has_state(self, state: str) -> bool:
        row = self.row()
        return row is not None and row["state"] == state

    def compare(self) -> None:
        """Hold the table against the tool, at a moment around which nothing was written about groups."""
        for _ in range(6):
            self.row()
            # Side by side, so that the moment is short.
            with ThreadPoolExecutor(2) as pool:
                all_members = pool.submit(kafka_tools.describe_members, self.bootstrap)
                all_states = pool.submit(kafka_tools.describe_states, self.bootstrap)
            members = [one for one in all_members.result() if one.group_id == self.group]
            states = [one for one in all_states.result() if one.group_id == self.group]
            if self.log.read_on():
                continue
            row = self.row()
            assert row is not None
            assert _printed(row) == members
            ours = row["state"], row["generation"], row["target_epoch"], len(row["members"])
            (state,) = states
            assert ours == (state.state, state.group_epoch, state.target_epoch, state.members)
            assert self.log.quarantined == []
            self.seen_states.add(row["state"])
            return
        raise AssertionError("the group did not rest between two questions")


def _printed(row: dict[str, Any]) -> list[kafka_tools.MemberRow]:
    """The members as the tool prints them: it leaves out what a member has to give up."""
    reached = {one["member_id"]: one for one in row["reconciliation"]}
    printed = []
    for one in row["members"]:
        assert one["error"] is None
        progress = reached[one["member_id"]]
        pending = progress["pending_revocation"]
        held = {
            topic: [number for number in numbers if number not in pending.get(topic, ())]
            for topic, numbers in one["assigned"].items()
        }
        kept = {topic: numbers for topic, numbers in held.items() if numbers}
        printed.append(
            kafka_tools.MemberRow(
                group_id=row["group_id"],
                member_id=one["member_id"],
                group_instance_id=one["group_instance_id"],
                host=one["client_host"],
                client_id=one["client_id"],
                partitions=sum(map(len, kept.values())),
                assignment=_text(kept),
                member_epoch=progress["member_epoch"],
                target_epoch=row["target_epoch"],
                target=_text(progress["target"]),
            )
        )
    return sorted(printed)


def _text(held: dict[str, list[int]]) -> str | None:
    text = assignment_text(held)
    return None if text == "-" else text


@pytest.fixture
def scene(kip848_broker: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(kip848_broker.bootstrap_servers, request.node.name, tmp_path)
    yield made
    for member in made.members.values():
        member.kill()
    made.log.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_members_and_states_are_the_tools_whatever_members_do(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)
    scene.join("m0", "crabs")
    wait_until(lambda: scene.is_settled(1), what="the first member")
    for number in range(1, 7):
        choices = ["join", "join", *(["leave", "kill", "busy"] if len(scene.members) > 1 else [])]
        action = chance.choice(choices)
        log.info("%s with %s members", action, len(scene.members))
        if action == "join":
            scene.join(f"m{number}", *chance.sample(sorted(TOPICS), chance.randint(1, 2)))
        elif action == "busy":
            for member in scene.members.values():
                member.be_busy(busy=True)
            scene.join(f"m{number}", *TOPICS)
            wait_until(lambda: scene.has_state("Reconciling"), what="partitions that nobody gives up")
            scene.compare()
            for member in scene.members.values():
                member.be_busy(busy=False)
        else:
            name = chance.choice(sorted(scene.members))
            member = scene.members.pop(name)
            member.leave() if action == "leave" else member.kill()
        scene.compare()
    count = len(scene.members)
    wait_until(lambda: scene.is_settled(count), what="a settled group")
    scene.compare()
    while scene.members:
        scene.members.popitem()[1].leave()
    wait_until(lambda: scene.is_settled(0), what="an empty group")
    scene.compare()
    log.info("states compared: %s", scene.seen_states)
    assert {"Stable", "Empty"} <= scene.seen_states


def test_partition_that_a_busy_member_has_to_give_up_is_its_own_until_it_does(scene: Scene) -> None:
    scene.join("busy", "crabs")
    wait_until(lambda: scene.is_settled(1), what="the first member")
    scene.members["busy"].be_busy(busy=True)
    scene.join("waits", "crabs")
    wait_until(
        lambda: any(one["pending_revocation"] for one in _progress(scene).values()),
        what="the broker's demand",
    )

    row = scene.row()
    assert row is not None
    members = {one["client_id"]: one for one in row["members"]}
    by_id = _progress(scene)
    asked = by_id[members["busy"]["member_id"]]
    assert row["state"] == "Reconciling"
    assert members["busy"]["assigned"] == {"crabs": list(range(7))}
    assert asked["state"] == "UNREVOKED_PARTITIONS"
    assert asked["behind_since"] is not None
    assert members["waits"]["assigned"] == {}
    assert by_id[members["waits"]["member_id"]]["target"] == asked["pending_revocation"]
    scene.compare()

    scene.members["busy"].be_busy(busy=False)
    wait_until(lambda: scene.is_settled(2), what="the hand-over")
    assert all(one["behind_since"] is None for one in _progress(scene).values())
    assert scene.seen_states == {"Reconciling"}


def test_regex_is_shown_with_the_topics_that_the_broker_has_found(scene: Scene) -> None:
    scene.join("regex", "^c[lr]a.*s", group_instance_id="i-1")

    def is_resolved() -> bool:
        row = scene.row()
        return row is not None and bool(row["members"]) and row["members"][0]["topics"] == ["clams", "crabs"]

    wait_until(is_resolved, what="the broker's topics")
    wait_until(lambda: scene.is_settled(1), what="a settled group")
    row = scene.row()
    assert row is not None
    assert row["members"][0]["group_instance_id"] == "i-1"
    assert row["members"][0]["assigned"] == {name: list(range(n)) for name, n in TOPICS.items()}
    # librdkafka puts its expressions together, each in brackets.
    assert row["reconciliation"][0]["topic_regex"] == "(^c[lr]a.*s)"
    scene.compare()


def test_group_that_is_migrated_and_back_is_shown_by_its_protocol(scene: Scene) -> None:
    scene.join("classic", "crabs", group_protocol="classic")

    def is_of(group_type: str, count: int) -> bool:
        row = scene.row()
        return (
            row is not None
            and row["group_type"] == group_type
            and len(row["members"] or ()) == count
            and row["state"] == "Stable"
        )

    wait_until(lambda: is_of("classic", 1), what="the classic group")
    scene.join("new", "crabs")
    wait_until(lambda: is_of("consumer", 2), what="the migrated group")
    row = scene.row()
    assert row is not None
    classic = {one["client_id"]: one["member_id"] for one in row["members"]}["classic"]
    assert {one["member_id"]: one["is_classic"] for one in row["reconciliation"]}[classic] is True
    scene.members.pop("new").leave()
    wait_until(lambda: is_of("classic", 1), what="the group, classic again")
    assert scene.log.quarantined == []


def test_topic_that_is_deleted_leaves_no_trace_once_members_have_given_it_up(scene: Scene) -> None:
    # Held, as a client that nobody holds is gone before the answer comes.
    admin = admin_client(scene.bootstrap)
    create_topics(scene.bootstrap, {"short": 2})
    scene.join("m", "short", "clams")
    wait_until(lambda: scene.is_settled(1), what="a settled group")
    admin.delete_topics(["short"])["short"].result(10)

    def is_given_up() -> bool:
        row = scene.row()
        return row is not None and row["members"][0]["assigned"] == {"clams": [0, 1, 2, 3]}

    wait_until(is_given_up, what="an assignment without the topic")
    row = scene.row()
    assert row is not None
    assert row["members"][0]["error"] is None


def _progress(scene: Scene) -> dict[str, dict[str, Any]]:
    row = scene.row()
    return {} if row is None else {one["member_id"]: one for one in row["reconciliation"] or ()}
