"""One set of client properties, said in the words of both Kafka clients.

The configuration speaks librdkafka's language (`[kafka.properties]`). Spark's Kafka source is Java, where TLS
and SASL go by other names: `java_properties` translates, and `[kafka.java]` adds what has no counterpart.

References to secrets (`env:NAME`, `file:/path`) are not resolved before a client is made: librdkafka settings
go through `resolve` on the machine that connects, and the Java client resolves Kafka's own `${env:NAME}` and
`${directory:/dir:file}` placeholders (KIP-421). So neither a Spark plan nor a task carries a secret, unless
one is written into the configuration in plain text. That one does travel to the executors.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath

from pipeline.config_model import Config
from pipeline.secret_values import is_reference, resolve

__all__ = ["JAAS_MECHANISMS", "java_properties", "librdkafka_properties", "resolve", "unresolved"]

JAAS_MECHANISMS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""SASL mechanisms whose user name and password can be translated into a JAAS line."""

# Same name and meaning in librdkafka's CONFIGURATION.md and in the Java client's ConsumerConfig.
_SHARED_NAMES = frozenset(
    {
        "bootstrap.servers",
        "client.dns.lookup",
        "client.rack",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.kerberos.service.name",
        "security.protocol",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
    }
)

# librdkafka name -> Java name; the value is a file there and its text in Java.
_PEM_FILES = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_PEM_TEXTS = {
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
_PROVIDERS = {
    "env": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "directory": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}


def unresolved(config: Config) -> dict[str, str]:
    """Properties for librdkafka with references as references: what may be put into a plan or a task."""
    return dict(config.kafka.properties)


def librdkafka_properties(config: Config, **overrides: str) -> dict[str, str]:
    """Properties a confluent-kafka client is made from, here and now: references resolved, overrides on top.

    Raises:
        ConfigError: A secret that is referred to is not on this machine.
    """
    return resolve(unresolved(config)) | overrides


def java_properties(config: Config) -> dict[str, str]:
    """Properties for Spark's Kafka source and sink, without the prefix `kafka.`.

    Names that only librdkafka knows are left out. References become placeholders that the Java client
    resolves where it runs, so the result holds no secret that the configuration does not hold in plain text.
    """
    given = config.kafka.properties
    translated = {name: given[name] for name in sorted(_SHARED_NAMES & given.keys())}
    translated |= _tls(given) | _sasl(given) | config.kafka.java
    placeholders = {name: _placeholder(value) for name, value in translated.items()}
    return placeholders | _providers(placeholders)


def _tls(given: Mapping[str, str]) -> dict[str, str]:
    found = {java: given[name] for name, java in _PEM_TEXTS.items() if name in given}
    found |= {java: f"file:{given[name]}" for name, java in _PEM_FILES.items() if name in given}
    if "ssl.truststore.certificates" in found:
        found["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in found:
        found["ssl.keystore.type"] = "PEM"
    elif "ssl.keystore.location" in given:
        found["ssl.keystore.type"] = "PKCS12"
    if given.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    return found


def _sasl(given: Mapping[str, str]) -> dict[str, str]:
    mechanism = given.get("sasl.mechanism") or given.get("sasl.mechanisms")
    if mechanism is None:
        return {}
    found = {"sasl.mechanism": mechanism}
    module = JAAS_MECHANISMS.get(mechanism)
    if module and "sasl.username" in given and "sasl.password" in given:
        user, password = (_jaas_text(given[name]) for name in ("sasl.username", "sasl.password"))
        found["sasl.jaas.config"] = f'{module} required username="{user}" password="{password}";'
    return found


def _jaas_text(value: str) -> str:
    return _placeholder(value) if is_reference(value) else value.replace("\\", "\\\\").replace('"', '\\"')


def _placeholder(value: str) -> str:
    if not is_reference(value):
        return value
    kind, _, target = value.partition(":")
    if kind == "env":
        return f"${{env:{target}}}"
    path = PurePosixPath(target)
    return f"${{directory:{path.parent}:{path.name}}}"


def _providers(properties: Mapping[str, str]) -> dict[str, str]:
    used = [name for name in _PROVIDERS if any(f"${{{name}:" in value for value in properties.values())]
    if not used:
        return {}
    own = [name for name in properties.get("config.providers", "").split(",") if name and name not in used]
    classes = {f"config.providers.{name}.class": _PROVIDERS[name] for name in used}
    return {"config.providers": ",".join([*own, *used])} | classes
