"""A broker whose users log in by tokens that soon end, and a token function whose behaviour a test chooses."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.config.model import KafkaConfig
from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import HOST, free_ports
from tests.support.brokers import oauth_tokens
from tests.support.brokers.broker import SMALL, create_offsets_topic

PROVIDER = f"{oauth_tokens.__name__}:token"
_LOGIN = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";'
)
_LISTENER = "listener.name.sasl_plaintext.oauthbearer"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthBroker:
    """A running broker."""

    open_servers: str
    """Without a login."""
    servers: str
    """SASL/OAUTHBEARER with unsecured tokens; a connection ends with its token, unless it logs in anew."""

    def properties(self, folder: Path) -> dict[str, str]:
        """Of a librdkafka client, without what gives the token; the folder is that of `oauth_tokens`."""
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.config": str(folder),
            "log_level": "0",
        }

    def kafka(self, folder: Path) -> KafkaConfig:
        """For a configuration."""
        return KafkaConfig(token_provider=PROVIDER, properties=self.properties(folder))


@contextmanager
def oauth_broker(folder: Path) -> Iterator[OAuthBroker]:
    """A broker whose data are in the folder."""
    port, safe, controller = free_ports(3)
    properties = {
        **SMALL,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{port},SASL_PLAINTEXT://{HOST}:{safe},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},SASL_PLAINTEXT://{HOST}:{safe}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{_LISTENER}.sasl.jaas.config": _LOGIN,
        f"{_LISTENER}.connections.max.reauth.ms": str(int(oauth_tokens.LIFE_S * 1000)),
    }
    with EmbeddedBroker(data_dir=folder / "broker", port=port, properties=properties) as broker:
        create_offsets_topic(broker.bootstrap_servers)
        yield OAuthBroker(open_servers=broker.bootstrap_servers, servers=f"{HOST}:{safe}")
