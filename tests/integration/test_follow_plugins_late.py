"""Members of aiokafka that read a plan later than others, in the midst of the rebalance by which it is applied."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.protocol.group import SyncGroupRequest

from assignor.clients.aiokafka import Following
from assignor.clients.control import ControlState
from tests.support.followers.group_members import Members
from tests.support.followers.plugin_setup import PluginSetup, all_to_one
from tests.support.waiting import wait_until

# Longer than a member looks at its plan.
_ANSWER_S = 0.5


class LateState:
    """A state that is fed what arrives when its member has asked for the leader's answer, as on a busy machine."""

    def __init__(self, state: ControlState, consumer: AIOKafkaConsumer) -> None:
        self._state, self._consumer = state, consumer
        self._waiting: set[asyncio.Task[None]] = set()
        self.was_late = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def feed(self, *record: Any) -> None:
        self._waiting.add(asyncio.create_task(self._feed(record)))

    async def _feed(self, record: tuple[Any, ...]) -> None:
        while not self._awaits_its_answer():  # noqa: ASYNC110 - the client has no event for it
            await asyncio.sleep(0.001)
        self.was_late = True
        self._state.feed(*record)

    def _awaits_its_answer(self) -> bool:
        coordinator = self._consumer._coordinator
        return bool(coordinator._performed_join_prepare and not coordinator._rejoin_needed_fut.done())


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[LateState]:
    """Those of the members that are made from now on."""
    states: list[LateState] = []
    attach = Following.attach

    def attach_late(following: Following, consumer: AIOKafkaConsumer) -> None:
        attach(following, consumer)
        states.append(LateState(following._background._state, consumer))
        following._background._state = states[-1]  # type: ignore[assignment]  # a stand-in

    monkeypatch.setattr(Following, "attach", attach_late)
    return states


def answer_late(consumer: AIOKafkaConsumer) -> None:
    """Let the leader's answer take a while."""
    coordinator = consumer._coordinator
    send = coordinator._send_req

    async def sent(request: Any) -> Any:
        answer = await send(request)
        if isinstance(request, SyncGroupRequest):
            await asyncio.sleep(_ANSWER_S)
        return answer

    coordinator._send_req = sent


def test_members_that_read_a_plan_in_the_midst_of_their_join_add_no_rebalance(
    setup: PluginSetup, request: pytest.FixtureRequest
) -> None:
    with Members() as members:
        # The first is the leader, and has read the plan in time.
        members.add(setup.aiokafka_follower())
        members.settled(setup.places)
        states = request.getfixturevalue("states")
        members.add(setup.aiokafka_follower())
        members.add(setup.aiokafka_follower())
        base = members.settled(setup.places)
        for state in states:
            answer_late(state._consumer)
        generation = members.generation
        target = all_to_one(base)

        setup.publish(setup.plan(base, target, generation=generation))
        wait_until(lambda: members.owned() == target, what="the target")
        members.settled(setup.places, after=generation)

        assert [state.was_late for state in states] == [True, True]
        assert (members.generation, members.owned()) == (generation + 1, target)
