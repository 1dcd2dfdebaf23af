"""Why a call to Kafka failed: the cluster is away, or it is there and says no.

A call that gets no answer only says so. The reason (a wrong password, a certificate that nobody trusts, a listener
that speaks another protocol) librdkafka tells `error_cb` when the client is polled.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException

from pipeline.errors import AccessRefusedError, BrokerUnavailableError

_NO_ENTRY = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})  # noqa: SLF001 - public constant
_FORBIDDEN = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_UNANSWERED = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})  # noqa: SLF001 - public constants
# What comes of a plain client at a port that speaks TLS.
_SILENCE = KafkaError(
    KafkaError._TRANSPORT,  # noqa: SLF001 - public constant
    "somebody is at bootstrap.servers and says nothing: is security.protocol what is spoken there?",
)


class _Client(Protocol):
    def poll(self, timeout: float, /) -> object: ...


class Heard:
    """What a client says beside its answers."""

    def __init__(self) -> None:
        self._last = _SILENCE

    def of_brokers(self, error: KafkaError) -> None:
        """Keep it: the client's `error_cb`."""
        # Follows upon every other one, and says less.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - public constant
            self._last = error

    def asked(self, client: _Client) -> KafkaError:
        """What the client, polled now, has said last."""
        self._last = _SILENCE
        client.poll(0)
        return self._last


@contextmanager
def explained(doing: str, reason: Callable[[], KafkaError] | None = None) -> Iterator[None]:
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
    doing: str, failure: KafkaException, reason: Callable[[], KafkaError] | None = None
) -> AccessRefusedError | BrokerUnavailableError:
    """The error to raise for a failed call; see `explained`."""
    error: KafkaError = failure.args[0]
    if reason is not None and error.code() in _UNANSWERED:
        error = reason()
    if error.code() in _NO_ENTRY:
        return AccessRefusedError(f"{doing}: {error.str()}")
    if error.code() in _FORBIDDEN:
        return AccessRefusedError(f"{doing}: {error.str()} (README lists the rights that it takes)")
    return BrokerUnavailableError(f"{doing}: {error.str()}")
