"""Followers on a cluster whose connections end with their tokens: each of their own clients logs in anew, too."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from aiokafka.abc import AbstractTokenProvider as AiokafkaProvider
from confluent_kafka import Producer
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonProvider

from assignor.clients.confluent import Follower
from assignor.protocol import control
from assignor.protocol.acks import Applied, Refused
from tests.support.brokers.oauth import OAuthBroker
from tests.support.brokers.oauth_tokens import LIFE_S, unsecured_jws
from tests.support.followers.follow_plans import key_of, plan
from tests.support.followers.group_members import Members
from tests.support.followers.plugin_members import AiokafkaMember, KafkaPythonMember
from tests.support.followers.plugin_setup import PARTITIONS, RECORDS, PluginSetup
from tests.support.java.java_jar import JSON, java_jar
from tests.support.java.java_members import EAGER, JavaHost, JavaMember, none_failed, properties
from tests.support.java.java_members import apply as apply_and_acknowledge
from tests.support.waiting import wait_until

_JAAS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    f'unsecuredLoginStringClaim_sub="member" unsecuredLoginLifetimeSeconds="{int(LIFE_S)}";'
)


def token() -> str:
    now_s = time.time()
    return unsecured_jws(now_s, now_s + LIFE_S)


class OfKafkaPython(KafkaPythonProvider):  # type: ignore[misc]  # the client has no types
    """Its provider."""

    def token(self) -> str:
        return token()


class OfAiokafka(AiokafkaProvider):  # type: ignore[misc]  # the client has no types
    """Its provider."""

    async def token(self) -> str:
        await asyncio.sleep(0)
        return token()


@pytest.fixture
def places(oauth: OAuthBroker, request: pytest.FixtureRequest) -> PluginSetup:
    """Topics named for the test."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return PluginSetup.made(oauth.open_servers, name)


def follow_through_tokens(setup: PluginSetup, members: Members) -> None:
    """Two plans, more than a token's life apart, applied and acknowledged by all."""
    members.settled(setup.places)
    apply_and_acknowledge(setup, members, epoch=1)
    later_s = time.monotonic() + 1.5 * LIFE_S
    wait_until(lambda: time.monotonic() > later_s, what="the end of the first tokens")
    apply_and_acknowledge(setup, members, epoch=2)
    wait_until(
        lambda: len(set().union(*(one.read for one in members.all))) == PARTITIONS * RECORDS,
        what="every record",
    )
    assert setup.said(Refused) == []


def plugin_member(kind: str, oauth: OAuthBroker, setup: PluginSetup) -> KafkaPythonMember | AiokafkaMember:
    login: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    login["sasl_oauth_token_provider"] = OfKafkaPython() if kind == "kafka-python" else OfAiokafka()
    topics = {"control_topic": setup.control, "acks_topic": setup.acks}
    connection = {"bootstrap_servers": oauth.servers, **login}
    make = KafkaPythonMember if kind == "kafka-python" else AiokafkaMember
    return make(oauth.servers, setup.name, [setup.name], connection=connection, **topics, **login)


@pytest.mark.parametrize("kind", ["kafka-python", "aiokafka"])
def test_plug_in_reads_plans_and_acknowledges_with_tokens(
    oauth: OAuthBroker, places: PluginSetup, kind: str
) -> None:
    with Members() as members:
        for _ in range(2):
            members.add(plugin_member(kind, oauth, places))
        follow_through_tokens(places, members)


def test_java_follower_reads_plans_and_acknowledges_with_tokens(
    oauth: OAuthBroker, places: PluginSetup
) -> None:
    config = properties(oauth.servers, places.name, [EAGER]) | {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": _JAAS,
        # By default a token lives for an hour, and is not renewed more often than each minute.
        "sasl.login.refresh.min.period.seconds": "1",
        "sasl.login.refresh.buffer.seconds": "1",
    }
    with JavaHost(java_jar(), more=(JSON,)) as host, Members() as members:
        for _ in range(2):
            members.add(JavaMember(host, config, [places.name]))
        follow_through_tokens(places, members)
    assert none_failed(members)


def test_confluent_follower_reads_plans_and_acknowledges_with_tokens(
    oauth: OAuthBroker, places: PluginSetup, tmp_path: Path
) -> None:
    calls: list[float] = []

    def oauth_cb(_config: str) -> tuple[str, float]:
        calls.append(time.time())
        return token(), time.time() + LIFE_S

    config = {
        **oauth.properties(tmp_path),
        "oauth_cb": oauth_cb,
        "group.id": places.name,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    topics = {"control_topic": places.control, "acks_topic": places.acks, "cluster": "loc"}
    with Follower(config, [places.name], **topics) as follower:
        wait_until(lambda: follower.poll(0.2) or follower.state.settled, what="the group joined")
        for epoch in (1, 2):
            poll_until_time(follower, time.monotonic() + 1.5 * LIFE_S)
            _put_plan(oauth, places, follower, epoch)
            poll_until_applied(follower, places, epoch)
        follower.commit(asynchronous=False)

    # Three clients, each with its first token and later ones.
    assert len(calls) > 6


def poll_until_time(follower: Follower, at_s: float) -> None:
    def is_over() -> bool:
        follower.poll(0.1)
        return time.monotonic() > at_s

    wait_until(is_over, what="the end of the tokens before")


def poll_until_applied(follower: Follower, setup: PluginSetup, epoch: int) -> None:
    def is_applied() -> bool:
        follower.poll(0.1)
        return any(ack.epoch == epoch for ack in setup.said(Applied))

    wait_until(is_applied, what=f"plan {epoch} applied")


def _put_plan(oauth: OAuthBroker, setup: PluginSetup, follower: Follower, epoch: int) -> None:
    """It moves nothing, and is accepted all the same."""
    state = follower.state
    base = {state.member: sorted(number for _, number in state.base)}
    record = plan(
        base,
        base,
        generation=state.generation,
        cluster="loc",
        topic=setup.name,
        group=setup.name,
        epoch=epoch,
    )
    producer = Producer({"bootstrap.servers": oauth.open_servers, "log_level": 0})
    producer.produce(
        setup.control, key=key_of(record), value=control.encode(record), headers=control.headers(record.epoch)
    )
    assert producer.flush(10) == 0
