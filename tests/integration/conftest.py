"""Fixtures of the tests with a broker."""

import pytest

from pipeline.embedded import EmbeddedBroker
from tests.support.plugin_stage import Stage


@pytest.fixture
def stage(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Stage:
    """Topics named for the test."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return Stage.made(broker.bootstrap_servers, name)
