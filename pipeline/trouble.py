"""Why a call to Kafka failed: the cluster is away, or it is there and says no.

A call that gets no answer only says so. The reason (a wrong password, a certificate that nobody trusts, a listener
that speaks another protocol) librdkafka tells `error_cb` when the client is polled.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException

from pipeline.errors import AccessRefusedError, BrokerUnavailableError, ConfigError

RIGHTS = "README lists the rights that it takes"
_NO_ENTRY = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})  # noqa: SLF001 - public constant
# librdkafka calls that failed authentication, too: a connection that broke off, a token server that is away.
_NO_VERDICT = ("Local: ", "Failed to acquire SASL OAUTHBEARER token")
_FORBIDDEN = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_UNANSWERED = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})  # noqa: SLF001 - public constants
_UNKNOWN = "(no reason was heard: a firewall, or another security.protocol?)"


class _Client(Protocol):
    def poll(self, timeout: float, /) -> object: ...


class Heard:
    """What a client says beside its answers."""

    def __init__(self) -> None:
        self._last: KafkaError | None = None

    def of_brokers(self, error: KafkaError) -> None:
        """Keep it: the client's `error_cb`."""
        # That all are down follows upon every other error, and what one broker refuses another one cannot mend.
        is_less = error.code() == KafkaError._ALL_BROKERS_DOWN or _is_no_entry(self._last)  # noqa: SLF001 - public constant
        if not is_less:
            self._last = error

    def asked(self, client: _Client) -> KafkaError | None:
        """What the client, polled now, has to say; None for nothing."""
        self._last = None
        client.poll(0)
        return self._last


@contextmanager
def usable_properties() -> Iterator[None]:
    """Make the clients in the body.

    Raises:
        ConfigError: librdkafka cannot use their properties.
    """
    try:
        yield
    except KafkaException as failure:
        raise ConfigError(f"kafka.properties: {failure.args[0].str()}") from failure


@contextmanager
def explained(doing: str, reason: Callable[[], KafkaError | None] | None = None) -> Iterator[None]:
    """Raise what the body's calls to Kafka fail with as an error that says why.

    Args:
        doing: What has failed if one does, in words.
        reason: Asked (`Heard.asked`) when a call got no answer.

    Raises:
        AccessRefusedError: The cluster does not let this user in, or not do it.
        BrokerUnavailableError: Anything else.
    """
    try:
        yield
    except KafkaException as failure:
        raise trouble(doing, failure, reason) from failure


def trouble(
    doing: str, failure: KafkaException, reason: Callable[[], KafkaError | None] | None = None
) -> AccessRefusedError | BrokerUnavailableError:
    """The error to raise for a failed call; see `explained`."""
    error: KafkaError = failure.args[0]
    hint = ""
    if reason is not None and error.code() in _UNANSWERED:
        heard = reason()
        error, hint = (heard, "") if heard is not None else (error, f" {_UNKNOWN}")
    if _is_no_entry(error):
        return AccessRefusedError(f"{doing}: {error.str()}")
    if error.code() in _FORBIDDEN:
        return AccessRefusedError(f"{doing}: {error.str()} ({RIGHTS})")
    return BrokerUnavailableError(f"{doing}: {error.str()}{hint}")


def _is_no_entry(error: KafkaError | None) -> bool:
    if error is None or error.code() not in _NO_ENTRY:
        return False
    return not any(words in error.str() for words in _NO_VERDICT)
