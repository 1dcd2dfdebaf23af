"""KIP-848 groups of a live broker are planned from the records that it writes, as advice or for its assignor."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assignor.protocol.control import decode
from assignor.protocol.ranges import parse_ranges
from pipeline.config.model import GroupRule
from pipeline.fold.control_messages import HANDED_OVER
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.planning.memory import PlanMemory
from pipeline.planning.state import PlanState, from_json
from pipeline.planning.step import PlanSettings, Stored, make_plans
from pipeline.planning.values import Published
from tests.support.brokers.broker import create_offsets_topic, create_topics, small_broker
from tests.support.brokers.group_log import GroupLog
from tests.support.groups.kip848_member import Member
from tests.support.job.frames import NOW_MS, arrow, at
from tests.support.planning.settings import SETTINGS
from tests.support.waiting import wait_until

Row = dict[str, Any]

N = 8
BY_BROKER = replace(
    SETTINGS,
    config=SETTINGS.config.model_copy(update={"groups": (GroupRule(pattern=".*", follow="broker"),)}),
)


@pytest.fixture(scope="module")
def kip848_broker() -> Iterator[EmbeddedBroker]:
    with small_broker() as running:
        create_offsets_topic(running.bootstrap_servers)
        create_topics(running.bootstrap_servers, {"crabs": N})
        yield running


class Scene:
    """A group with its members, and what is decided about it."""

    def __init__(
        self, bootstrap: str, group: str, folder: Path, *, topic: str = "crabs", partitions: int = N
    ) -> None:
        self.members: dict[str, Member] = {}
        self.log = GroupLog(bootstrap)
        self.memory = PlanMemory()
        self._bootstrap, self._group, self._folder = bootstrap, group, folder
        self._topic, self._partitions = topic, partitions

    def join(self, name: str, *subscription: str, **properties: Any) -> None:
        given = {"client.id": name, **{key.replace("_", "."): value for key, value in properties.items()}}
        self.members[name] = Member(
            self._bootstrap, self._group, list(subscription), self._folder / f"busy-{name}", **given
        )

    def row(self) -> Row | None:
        """The group as the table has it now."""
        self.log.read_on()
        rows = self.log.groups.table.to_pylist(maps_as_pydicts="strict")
        return next((row for row in rows if row["group_id"] == self._group), None)

    def is_in(self, state: str, count: int) -> bool:
        row = self.row()
        return row is not None and (row["state"], len(row["members"] or ())) == (state, count)

    def decide(self, settings: PlanSettings = SETTINGS) -> Row:
        """The decision about the group as it is in the table, by lag of which the first half has nearly all."""
        topic = {"topic": self._topic, "log_start_offset": 0, "log_end_offset": 10_000, "observed_at": at(0)}
        lag = {"topic": self._topic, "group_id": self._group}
        n_partitions = self._partitions
        committed = [1000 * n if n < n_partitions // 2 else 9_990 for n in range(n_partitions)]
        stored = Stored(
            groups=self.log.groups.table,
            lags=arrow(
                "partition_lag",
                *(
                    lag | {"partition": n, "committed_offset": done, "lag": 10_000 - done}
                    for n, done in enumerate(committed)
                ),
            ),
            topic_offsets=arrow(
                "topic_offsets", *(topic | {"partition": n, "arrival_rate": 0.0} for n in range(n_partitions))
            ),
            acks=arrow("acks"),
            moved=HANDED_OVER.empty_table(),
            orders=arrow("orders"),
        )
        (row,) = make_plans(stored, [self._group], settings, self.memory).to_pylist()
        self.memory.states[self._group] = row["state"]
        if row["decision"] == "publish":
            self.memory.published[self._group] = Published(
                epoch=row["epoch"],
                target_hash=row["target_hash"],
                base_hash=row["base_hash"],
                valid_until_ms=round(row["valid_until"].timestamp() * 1000),
            )
        return dict(row)

    @property
    def plan(self) -> PlanState:
        plan = from_json(self.memory.states[self._group]).plan
        assert plan is not None
        return plan


@pytest.fixture
def scene(kip848_broker: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(kip848_broker.bootstrap_servers, request.node.name, tmp_path)
    yield made
    for member in made.members.values():
        member.kill()
    made.log.close()


def _placed(assignment: list[tuple[str, list[tuple[str, str]]]]) -> list[int]:
    return sorted(
        number
        for _, topics in assignment
        for _, ranges in topics
        for number in parse_ranges(ranges, at_most=N)
    )


def test_settled_group_is_advised_by_its_member_ids_whether_by_name_or_expression(scene: Scene) -> None:
    scene.join("by-name", "crabs")
    scene.join("by-expression", "^cra.*s")
    wait_until(lambda: scene.is_in("Stable", 2), what="two members")
    row = scene.row()
    assert row is not None

    decision = scene.decide()

    assert decision["decision"] == "advice"
    assert {name for name, _ in decision["assignment"]} == {one["member_id"] for one in row["members"]}
    assert _placed(decision["assignment"]) == list(range(N))
    assert decision["moves"]
    assert (decision["epoch"], decision["record"]) == (None, None)


def test_group_on_its_way_gets_no_advice(scene: Scene) -> None:
    scene.join("busy", "crabs")
    wait_until(lambda: scene.is_in("Stable", 1), what="the first member")
    scene.members["busy"].be_busy(busy=True)
    scene.join("waits", "crabs")
    wait_until(lambda: scene.is_in("Reconciling", 2), what="partitions that nobody gives up")

    early, late = scene.decide(), scene.decide(replace(SETTINGS, at_ms=NOW_MS * 2))
    scene.members["busy"].be_busy(busy=False)

    assert (early["decision"], late["decision"]) == ("abstain", "abstain")
    assert early["reason"].startswith("the group is not stable (state Reconciling)")
    assert " is stuck: " in late["reason"]


def test_plan_for_the_broker_is_superseded_when_the_broker_assigns_by_itself(scene: Scene) -> None:
    scene.join("one", "crabs")
    scene.join("two", "crabs")
    wait_until(lambda: scene.is_in("Stable", 2), what="two members")
    row = scene.row()
    assert row is not None

    published = scene.decide(BY_BROKER)
    waits = scene.decide(BY_BROKER)
    scene.join("three", "crabs")
    wait_until(lambda: scene.is_in("Stable", 3), what="a third member")
    after = scene.decide(SETTINGS)

    record = decode(published["record"].encode())
    assert (record.group_protocol, record.base_generation) == ("consumer", row["generation"])
    assert set(record.members) == {one["member_id"] for one in row["members"]}
    assert (waits["decision"], waits["record"]) == ("unchanged", None)
    assert waits["reason"].endswith("the broker takes it when it assigns the group next")
    assert scene.plan.status == "superseded"
    assert after["decision"] == "advice"


def test_members_that_ask_for_another_assignor_get_advice(scene: Scene) -> None:
    scene.join("one", "crabs", group_remote_assignor="uniform")
    scene.join("two", "crabs", group_remote_assignor="uniform")
    wait_until(lambda: scene.is_in("Stable", 2), what="two members")

    decision = scene.decide(BY_BROKER)

    assert decision["decision"] == "advice"
    assert "asks for the broker's assignor uniform" in decision["reason"]
