"""What Kafka clients are made from: `[kafka.properties]`, and what the job adds to it.

References to secrets (`env:NAME`, `file:/path`) are not resolved before a client is made, on the machine that
connects. So neither a Spark plan nor a task carries a secret, unless one is written into the configuration in plain
text. That one does travel to the executors.
"""

from pipeline.config.model import Config
from pipeline.config.secret_values import resolve

__all__ = ["librdkafka_properties", "resolve", "unresolved"]


_DEFAULTS = {
    # librdkafka writes to stderr by itself: several lines a second, of each client, while a broker is away. What a
    # client could not do is logged by the one who asked it, once, with the reason.
    "log_level": "0",
    # Admin clients and producers would make a topic by asking for it, where the broker lets them, and not compacted.
    "allow.auto.create.topics": "false",
}


def unresolved(config: Config) -> dict[str, str]:
    """Properties for librdkafka with references as references: what may be put into a plan or a task."""
    # A broker that takes a request and never answers counts as up until this time is over, and librdkafka goes on
    # asking it; the default is a minute.
    timeout_ms = str(config.source.request_timeout_s * 1000)
    return {**_DEFAULTS, "socket.timeout.ms": timeout_ms, **config.kafka.properties}


def librdkafka_properties(config: Config, **overrides: str) -> dict[str, str]:
    """Properties a confluent-kafka client is made from, here and now: references resolved, overrides on top.

    Raises:
        ConfigError: A secret that is referred to is not on this machine.
    """
    return resolve(unresolved(config)) | overrides
