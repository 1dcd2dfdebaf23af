"""Followers of stand-ins."""

import pytest

from assignor.clients.confluent import follower as confluent
from tests.support.followers.follow_fakes import FakeConsumer, FakeTopics
from tests.support.followers.follow_setup import GIVES_1, Setup


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent, "Consumer", FakeConsumer)
    monkeypatch.setattr(confluent, "FollowTopics", FakeTopics)


@pytest.fixture
def setup() -> Setup:
    """Member a in generation 1, with partitions 0 and 1 committed at 40."""
    setup = Setup()
    setup.consumer.stored = {0: 40, 1: 40}
    setup.consumer.will("on_assign", [0, 1])
    setup.poll()
    return setup


@pytest.fixture
def following(setup: Setup) -> Setup:
    """It has also read its own acceptance."""
    setup.topics.offered = GIVES_1
    setup.poll()
    setup.poll()
    setup.calls()
    return setup
