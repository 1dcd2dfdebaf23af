"""Fixtures of the tests with a broker."""

from collections.abc import Iterator

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.brokers.broker import create_offsets_topic
from tests.support.brokers.oauth import OAuthBroker, oauth_broker
from tests.support.brokers.secured import Secured, secured_broker
from tests.support.followers.plugin_setup import PluginSetup


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with TLS, SASL and ACLs; give topics, groups and users names of your own."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        create_offsets_topic(running.open_servers)
        yield running


@pytest.fixture(scope="session")
def oauth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OAuthBroker]:
    """A broker that takes tokens for ten seconds; give topics and groups names of your own."""
    with oauth_broker(tmp_path_factory.mktemp("oauth")) as running:
        yield running


@pytest.fixture
def setup(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> PluginSetup:
    """Topics named for the test."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return PluginSetup.made(broker.bootstrap_servers, name)
