"""A broker with TLS, SASL and ACLs; the test itself goes in by a plain listener, where everything is allowed."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from pipeline.local.embedded.broker import EmbeddedBroker
from pipeline.local.embedded.config import HOST, free_port
from pipeline.local.java import find_java
from tests.support.brokers.broker import SMALL, admin_client

_STORE_PASSWORD = "of-the-key-store"  # noqa: S105 - of a key that is made for one test
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

Right: TypeAlias = tuple[AclOperation, ResourceType, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A running broker."""

    open_servers: str
    """Without TLS; who comes there may do everything."""
    servers: str
    """TLS, SCRAM-SHA-512, and nothing that is not allowed."""
    ca: Path
    """PEM file."""
    password_file: Path
    admin: AdminClient

    def add_user(self, name: str) -> None:
        """A user whose password is in `password_file`."""
        secret = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(name, secret, self.password_file.read_bytes())
        for future in self.admin.alter_user_scram_credentials([wanted]).values():
            future.result(timeout=10)

    def allow(self, user: str, *rights: Right) -> None:
        """Allow the user these operations; a name that ends with `*` is all names that begin so."""
        acls = []
        for operation, kind, name in rights:
            pattern = ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL
            whom = (f"User:{user}", "*")
            acls.append(
                AclBinding(kind, name.removesuffix("*"), pattern, *whom, operation, AclPermissionType.ALLOW)
            )
        for future in self.admin.create_acls(acls).values():
            future.result(timeout=10)

    def properties(self, user: str) -> dict[str, str]:
        """What a librdkafka client of the user is made from."""
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": self.password_file.read_text(),
            "log_level": "0",
        }

    def settings(self, user: str) -> dict[str, str]:
        """The same for `[kafka.properties]`."""
        return {**self.properties(user), "sasl.password": f"file:{self.password_file}"}


@contextmanager
def secured_broker(
    folder: Path, *, safe_port: int | None = None, more: Mapping[str, str] | None = None
) -> Iterator[Secured]:
    """A broker whose keys and data are in the folder.

    Args:
        folder: The certificate of the broker becomes `ca.pem` in it.
        safe_port: Of the listener with TLS and SASL, for who has to know it before.
        more: Properties of the broker.
    """
    store, ca = _key_store(folder)
    password_file = folder / "password"
    password_file.write_text("mark-9c4e of a password", encoding="utf-8")
    port, safe, controller = free_port(), safe_port or free_port(), free_port()
    properties = {
        **SMALL,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{port},SASL_SSL://{HOST}:{safe},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port},SASL_SSL://{HOST}:{safe}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": _STORE_PASSWORD,
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": _SCRAM,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        **(more or {}),
    }
    with EmbeddedBroker(data_dir=folder / "broker", port=port, properties=properties) as broker:
        admin = admin_client(broker.bootstrap_servers)
        yield Secured(
            open_servers=broker.bootstrap_servers,
            servers=f"{HOST}:{safe}",
            ca=ca,
            password_file=password_file,
            admin=admin,
        )


def _key_store(folder: Path) -> tuple[Path, Path]:
    """A key with a certificate of its own for the broker, and that certificate for its clients."""
    store, ca = folder / "broker.p12", folder / "ca.pem"
    keytool = str(Path(find_java()).resolve().with_name("keytool"))
    common = ["-alias", "broker", "-keystore", str(store), "-storetype", "PKCS12"]
    secret = ["-storepass", _STORE_PASSWORD]
    names = ["-dname", "CN=broker", "-ext", f"SAN=IP:{HOST}"]
    made = ["-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "2"]
    subprocess.run([keytool, *made, *names, *common, *secret], check=True, capture_output=True)
    shown = ["-exportcert", "-rfc", "-file", str(ca)]
    subprocess.run([keytool, *shown, *common, *secret], check=True, capture_output=True)
    return store, ca
