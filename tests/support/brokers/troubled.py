"""A broker whose control and acks topics can be made to fail, for followers alone.

Followers come in by a listener of their own: through a proxy, as a user that has to be allowed. Consumers and the test
come in by a plain listener, where nothing ever goes wrong.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from assignor.protocol import control
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import HOST, free_port
from tests.support.brokers.broker import SMALL, admin_client, create_topics
from tests.support.brokers.proxy import Proxy
from tests.support.followers.plugin_setup import PluginSetup
from tests.support.waiting import wait_until

_USER, _PASSWORD = "follower", "of-a-follower"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubled:
    """A running broker."""

    bootstrap: str
    proxy: Proxy
    admin: AdminClient

    @property
    def connection(self) -> Mapping[str, str]:
        """Settings of a follower, the same for kafka-python and aiokafka."""
        return {
            "bootstrap_servers": f"{HOST}:{self.proxy.port}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": _USER,
            "sasl_plain_password": _PASSWORD,
        }

    def allow(self, setup: PluginSetup) -> None:
        """Let followers use the topics of a test."""
        for future in self.admin.create_acls(_rights(setup)).values():
            future.result(timeout=10)

    def _forbid(self, setup: PluginSetup) -> None:
        filters = [
            AclBindingFilter(
                ResourceType.TOPIC,
                topic,
                ResourcePatternType.LITERAL,
                None,
                None,
                AclOperation.ANY,
                AclPermissionType.ANY,
            )
            for topic in (setup.control, setup.acks)
        ]
        for future in self.admin.delete_acls(filters).values():
            future.result(timeout=10)

    def _delete(self, setup: PluginSetup) -> None:
        topics = [setup.control, setup.acks]
        for future in self.admin.delete_topics(topics).values():
            future.result(timeout=10)
        wait_until(
            lambda: not set(topics) & set(self.admin.list_topics(timeout=10).topics), what="topics deleted"
        )

    def _create(self, setup: PluginSetup) -> None:
        create_topics(self.bootstrap, {setup.control: 1, setup.acks: 1})

    def _damage(self, setup: PluginSetup) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for value in (b"\xff", b"{}", b'{"schema":1,"epoch":"nine"}'):
            producer.produce(setup.control, key=control.encode_key("local", setup.name), value=value)
        assert producer.flush(10) == 0

    def begin(self, kind: str, setup: PluginSetup) -> None:
        """Make the topics fail in one of the `KINDS`."""
        _BEGIN[kind](self, setup)

    def end(self, kind: str, setup: PluginSetup) -> None:
        """Let them work again."""
        _END[kind](self, setup)


def _pass(_: Troubled, __: PluginSetup) -> None:
    """Damaged records stay where they are."""


_BEGIN: dict[str, Callable[[Troubled, PluginSetup], None]] = {
    "away": lambda troubled, _: troubled.proxy.refuse(),
    "slow": lambda troubled, _: troubled.proxy.black_hole(),
    "damaged": Troubled._damage,
    "deleted": Troubled._delete,
    "forbidden": Troubled._forbid,
}
_END: dict[str, Callable[[Troubled, PluginSetup], None]] = {
    "away": lambda troubled, _: troubled.proxy.forward(),
    "slow": lambda troubled, _: troubled.proxy.forward(),
    "damaged": _pass,
    "deleted": Troubled._create,
    "forbidden": Troubled.allow,
}
KINDS = tuple(_BEGIN)


@contextmanager
def troubled_broker(folder: Path) -> Iterator[Troubled]:
    """A broker whose data is in the folder."""
    port, inner, controller = free_port(), free_port(), free_port()
    with Proxy(inner) as proxy:
        properties = {
            **SMALL,
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listeners": f"PLAINTEXT://{HOST}:{port},SASL_PLAINTEXT://{HOST}:{inner},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port},SASL_PLAINTEXT://{HOST}:{proxy.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (f'{_LOGIN} user_{_USER}="{_PASSWORD}";'),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        with EmbeddedBroker(data_dir=folder, port=port, properties=properties) as broker:
            servers = broker.bootstrap_servers
            yield Troubled(bootstrap=servers, proxy=proxy, admin=admin_client(servers))


def _rights(setup: PluginSetup) -> list[AclBinding]:
    wanted = [
        (setup.control, AclOperation.READ),
        (setup.control, AclOperation.DESCRIBE),
        (setup.acks, AclOperation.WRITE),
        (setup.acks, AclOperation.DESCRIBE),
    ]
    return [
        AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{_USER}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for topic, operation in wanted
    ]
