"""Required settings of a follower's consumer, and the settings of its two other clients."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

from assignor.errors import AssignorError

Config: TypeAlias = Mapping[str, Any]
"""Properties of confluent-kafka."""

_EAGER = frozenset({"range", "roundrobin"})
_RESETS = frozenset({"smallest", "earliest", "beginning", "largest", "latest", "end"})
_EARLIEST = frozenset({"smallest", "earliest", "beginning"})
_MAX_POLL_INTERVAL_MS = 300_000  # of librdkafka
_SESSION_TIMEOUT_MS = 45_000  # of librdkafka
_TAKE_S = 10.0
_LEAVE_S = 15.0
# What it takes to reach and trust the cluster; everything else is about the user's own consumer.
_SHARED = (
    "bootstrap.",
    "broker.",
    "client.",
    "metadata.",
    "reconnect.",
    "sasl.",
    "security.",
    "socket.",
    "ssl.",
)
_SHARED_NAMES = frozenset({"enable.ssl.certificate.verification", "oauth_cb", "log_level", "logger", "debug"})
# The user's callbacks that run inside calls of the client, like `on_commit` and the listeners.
_CALLBACKS = ("error_cb", "stats_cb", "throttle_cb")


class FollowerConfigError(AssignorError):
    """A follower is not safe with this configuration; the message names the setting to change.

    Attributes:
        name: The property.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name = name
        self._problem = problem

    def __str__(self) -> str:
        return f"{self.name}: {self._problem}"


def check(config: Config) -> None:
    """Refuse settings that can give a partition two owners, or commit unprocessed records.

    Raises:
        FollowerConfigError: For the first such property.
    """
    if "default.topic.config" in config:
        # The client takes it, and nothing here would see an auto.offset.reset in it.
        raise FollowerConfigError(
            "default.topic.config",
            "a follower does not look into it, so it would skip records where `auto.offset.reset` is in it; move its "
            "properties up into the configuration itself",
        )
    if not config.get("group.id"):
        raise FollowerConfigError("group.id", "a follower must be a member of a group; set the group's id")
    if _text(config, "group.protocol", "classic") != "classic":
        raise FollowerConfigError(
            "group.protocol",
            "with `consumer` (KIP-848) a partition that was handed over can get a second owner, and both may commit; "
            "set `classic`",
        )
    strategies = {name.strip() for name in _text(config, "partition.assignment.strategy", "range").split(",")}
    if not strategies <= _EAGER:
        raise FollowerConfigError(
            "partition.assignment.strategy",
            "cooperative members keep reading during a rebalance, so a partition that was handed over can get a "
            "second owner; set `range`, `roundrobin` or both",
        )
    if _text(config, "enable.auto.commit", "true") != "false":
        raise FollowerConfigError(
            "enable.auto.commit",
            "each hand-over would commit records that were fetched but not processed; set it to False, and commit "
            "records once they are processed",
        )
    if _text(config, "auto.offset.reset", "largest") not in _RESETS:
        raise FollowerConfigError(
            "auto.offset.reset", "a follower needs an offset to start at; set `earliest` or `latest`"
        )


def consumer_config(config: Config) -> dict[str, Any]:
    """Configure the user's own consumer, with the classic protocol by name: a later client may have another default."""
    return {**config, "group.protocol": "classic"}


def callbacks_in(context: Callable[[], AbstractContextManager[None]], config: Config) -> dict[str, Any]:
    """Configure the user's callbacks that a call of the client calls, each to run in that context."""

    def run_in_context(callback: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object) -> object:
            with context():
                return callback(*arguments)

        return called

    return {name: run_in_context(config[name]) for name in _CALLBACKS if config.get(name)}


def is_static(config: Config) -> bool:
    """Return whether the member has a group instance id."""
    return bool(config.get("group.instance.id"))


def starts_earliest(config: Config) -> bool:
    """Return whether a partition without a commit is read from its beginning, not its end."""
    return _text(config, "auto.offset.reset", "largest") in _EARLIEST


def stores_by_hand(config: Config) -> bool:
    """Return whether `commit()` without arguments commits the offsets of `store_offsets`."""
    return _text(config, "enable.auto.offset.store", "true") == "false"


def with_credentials(config: Config, username: str, password: str) -> dict[str, Any]:
    """The configuration with these SASL credentials."""
    return {**config, "sasl.username": username, "sasl.password": password}


def take_timeout_s(config: Config) -> float:
    """Return the time to wait for a new owner that may be busy: Kafka's limit for it, and some time to react."""
    return float(config.get("max.poll.interval.ms", _MAX_POLL_INTERVAL_MS)) / 1000 + _TAKE_S


def close_within_s(config: Config) -> float:
    """Return the time limit for leaving: librdkafka retries commits to a silent coordinator for a session timeout."""
    return float(config.get("session.timeout.ms", _SESSION_TIMEOUT_MS)) / 1000 + _LEAVE_S


def reader_config(config: Config) -> dict[str, Any]:
    """Configure the consumer of the control and acks topics; it joins no group and commits nothing."""
    return {
        **_shared(config),
        "group.id": config["group.id"],
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # Where to start is said, and an offset out of range means that the topic was made again.
        "auto.offset.reset": "error",
        # Says that a topic can be read where there is nothing to read.
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 100,
    }


def writer_config(config: Config) -> dict[str, Any]:
    """Configure the producer of acknowledgements."""
    return {**_shared(config), "enable.idempotence": True, "linger.ms": 0, "message.timeout.ms": 5000}


def _shared(config: Config) -> dict[str, Any]:
    return {
        name: value for name, value in config.items() if name.startswith(_SHARED) or name in _SHARED_NAMES
    }


def _text(config: Config, name: str, default: str) -> str:
    return str(config.get(name, default)).strip().lower()
