"""Properties of Kafka clients: `[kafka.properties]` and the additions of the job.

References to secrets (`env:NAME`, `file:/path`) are not resolved before a client is made, on the machine that
connects. So no Spark plan or task carries a secret, except one that the configuration has in plain text: that one does
travel to the executors. The token function travels by its name, as `token_provider`.
"""

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from pipeline.config import secret_values
from pipeline.config.model import Config
from pipeline.kafka.tokens import CALLBACK, ready, source_of

TOKEN_PROVIDER = "token_provider"  # noqa: S105 - the name of the key
"""`kafka.token_provider` among the properties; librdkafka has no property of this name."""
_TIMEOUT = "socket.timeout.ms"
_TIMEOUT_MS = 60_000  # of librdkafka

_END = "lagwise.end"
"""No property of librdkafka."""

_DEFAULTS = {
    # librdkafka writes to stderr by itself: several lines a second for each client while a broker is away. The caller
    # logs a failed call once, with the reason.
    "log_level": "0",
    # Otherwise admin clients and producers create a topic that they ask for, uncompacted, if the broker allows it.
    "allow.auto.create.topics": "false",
}


def unresolved(config: Config) -> dict[str, str]:
    """Properties for librdkafka with unresolved references, which may be part of a plan or a task."""
    # For this time a broker that accepts a request and never answers counts as up, and librdkafka keeps asking it; by
    # default a minute.
    timeout_ms = str(config.source.request_timeout_s * 1000)
    provider = config.kafka.token_provider
    named = {TOKEN_PROVIDER: provider} if provider else {}
    return {**_DEFAULTS, _TIMEOUT: timeout_ms, **config.kafka.properties, **named}


def resolve(properties: Mapping[str, str]) -> dict[str, Any]:
    """Properties for a confluent-kafka client on this machine: references resolved, token function loaded.

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
    """An admin client with `unresolved` properties, created on this machine.

    Raises:
        ConfigError: See `resolve`.
        KafkaException: There is no token to log in with.
    """
    return AdminClient(ready(resolve(properties)))


def refused_property(properties: Mapping[str, str]) -> str | None:
    """Return what librdkafka says of the first of these `unresolved` properties that it refuses, without its value.

    None if it takes all of them, as far as that shows without secrets. No client is made.
    """
    shown = {name: value for name, value in properties.items() if not secret_values.is_reference(value)}
    shown.pop(TOKEN_PROVIDER, None)
    try:
        # It takes one after the other, and refuses the last.
        AdminClient({**shown, _END: ""})
    except KafkaException as error:
        said = str(error.args[0].str()).strip()
        return None if _END in said else re.sub('^Invalid value ".*" for', "Invalid value for", said)
    return None
