"""What Kafka clients are made from: `[kafka.properties]`, and what the job adds to it.

References to secrets (`env:NAME`, `file:/path`) are not resolved before a client is made, on the machine that
connects. So neither a Spark plan nor a task carries a secret, unless one is written into the configuration in plain
text. That one does travel to the executors. The function that gives tokens travels by its name, as `token_provider`.
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka.admin import AdminClient

from pipeline.config import secret_values
from pipeline.config.model import Config
from pipeline.kafka.tokens import CALLBACK, ready, source_of

TOKEN_PROVIDER = "token_provider"  # noqa: S105 - the name of the key
"""`kafka.token_provider` among the properties of librdkafka, which knows none of this name."""
_TIMEOUT = "socket.timeout.ms"
_TIMEOUT_MS = 60_000  # of librdkafka

_DEFAULTS = {
    # librdkafka writes to stderr by itself: several lines a second for each client while a broker is away. The caller
    # logs a failed call once, with the reason.
    "log_level": "0",
    # Admin clients and producers would create a topic by asking for it, if the broker allows it, and not compacted.
    "allow.auto.create.topics": "false",
}


def unresolved(config: Config) -> dict[str, str]:
    """Properties for librdkafka with unresolved references, which may be part of a plan or a task."""
    # A broker that takes a request and never answers counts as up for this time, and librdkafka keeps asking it; the
    # default is a minute.
    timeout_ms = str(config.source.request_timeout_s * 1000)
    provider = config.kafka.token_provider
    named = {TOKEN_PROVIDER: provider} if provider else {}
    return {**_DEFAULTS, _TIMEOUT: timeout_ms, **config.kafka.properties, **named}


def resolve(properties: Mapping[str, str]) -> dict[str, Any]:
    """Properties for a confluent-kafka client on this machine: references resolved, the token function loaded.

    Args:
        properties: As `unresolved` gives them.

    Raises:
        ConfigError: A secret that is referred to, or the token function, is not on this machine.
    """
    resolved: dict[str, Any] = secret_values.resolve(properties)
    provider = resolved.pop(TOKEN_PROVIDER, None)
    if provider:
        timeout_s = float(resolved.get(_TIMEOUT, _TIMEOUT_MS)) / 1000
        config = resolved.get("sasl.oauthbearer.config", "")
        resolved[CALLBACK] = source_of(provider, config, timeout_s=timeout_s)
    return resolved


def librdkafka_properties(config: Config, **overrides: str) -> dict[str, Any]:
    """Properties for a confluent-kafka client on this machine: references resolved, overrides applied.

    Raises:
        ConfigError: A secret that is referred to, or the token function, is not on this machine.
    """
    return resolve(unresolved(config)) | overrides


def admin_of(properties: Mapping[str, str]) -> AdminClient:
    """A client for questions to the brokers, created on this machine.

    Args:
        properties: As `unresolved` gives them.

    Raises:
        ConfigError: See `resolve`.
        KafkaException: There is no token to log in with.
    """
    return AdminClient(ready(resolve(properties)))
