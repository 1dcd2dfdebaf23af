"""Causes of failed calls to Kafka: the cluster does not answer, or it refuses the call.

A call without an answer does not say why. librdkafka passes the reason (a wrong password, an untrusted certificate, a
listener with another protocol) to `error_cb` when the client is polled.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException

from pipeline.errors import (
    AccessRefusedError,
    AuthenticationError,
    BrokerUnavailableError,
    ConfigError,
    TopicMissingError,
)
from pipeline.kafka.tokens import ready, trouble

RIGHTS = "deploying-security.md lists the rights that lagwise needs"
_NO_ENTRY = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
# The clients also report these as failed authentication: a broken connection, an unreachable token server.
_NO_VERDICT = (
    "Local: ",
    "Failed to acquire SASL OAUTHBEARER token",
    "OAuth token not set within",
    "kafka.token_provider ",
)
FORBIDDEN = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Error codes of a missing right."""
FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
"""Error codes of a producer whose transactional id another one has taken over."""
_UNANSWERED = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})
_UNKNOWN = "(the client gives no reason; is it a firewall, or another security.protocol?)"

# Of two errors about the same handshake only one says what to do, and either may come last.
_UNVERIFIED = "certificate verify failed"
_VERIFY = "verify that ssl.ca.location is correct"


class _Client(Protocol):
    def poll(self, timeout: float, /) -> object: ...


ClientT = TypeVar("ClientT", bound=_Client)
Reason: TypeAlias = Callable[[], KafkaError | None]
"""Returns a client's newest error about its brokers; None if there is none."""


class _BrokerErrors:
    """Errors that a client reports outside of its calls."""

    def __init__(self) -> None:
        self._last: KafkaError | None = None

    def keep(self, error: KafkaError) -> None:
        """Keep an error that says more than the previous one; the client's `error_cb`."""
        # "All brokers down" follows every other error, and a refusal by one broker outweighs errors of others.
        is_less = error.code() == KafkaError._ALL_BROKERS_DOWN or _is_no_entry(self._last)
        if not is_less:
            self._last = error

    def newest(self, client: _Client) -> KafkaError | None:
        self._last = None
        client.poll(0)
        return self._last


def client_with_reason(
    make: Callable[[dict[str, Any]], ClientT], properties: Mapping[str, str]
) -> tuple[ClientT, Reason]:
    """A client with these properties, and a function that returns why a call got no answer.

    Raises:
        ConfigError: librdkafka cannot use the properties.
        BrokerUnavailableError: There is no token to log in with.
    """
    errors = _BrokerErrors()
    with explained("the Kafka cluster cannot be used"):
        properties = ready(properties)
    try:
        client = make({**properties, "error_cb": errors.keep})
    except KafkaException as failure:
        raise ConfigError(f"kafka.properties: {failure.args[0].str()}") from failure
    return client, partial(errors.newest, client)


@contextmanager
def explained(doing: str, reason: Reason | None = None) -> Iterator[None]:
    """Turn a failed call to Kafka in the body into an error that names the cause.

    `doing` is a clause that names what has failed; `reason` is asked if a call got no answer.

    Raises:
        AccessRefusedError: The cluster refuses this user, or the user lacks a right for the call.
        BrokerUnavailableError: Anything else.
    """
    try:
        yield
    except KafkaException as failure:
        raise error_of_call(doing, failure.args[0], reason) from failure


def error_of_call(
    doing: str, error: KafkaError, reason: Reason | None = None
) -> AccessRefusedError | BrokerUnavailableError:
    """The error to raise for the error that a call ended with; see `explained`."""
    hint = ""
    if (no_token := trouble()) is not None and error.code() in _UNANSWERED | _NO_ENTRY:
        # A broker's refusal of an old or missing token says nothing about the user's rights.
        return BrokerUnavailableError(f"{doing}: {no_token}")
    if reason is not None and error.code() in _UNANSWERED:
        cause = reason()
        error, hint = (cause, "") if cause is not None else (error, f" {_UNKNOWN}")
    if _is_no_entry(error):
        return AuthenticationError(f"{doing}: {error.str()}")
    if error.code() in FORBIDDEN:
        return AccessRefusedError(f"{doing}: {error.str()} ({RIGHTS})")
    if _UNVERIFIED in error.str() and _VERIFY not in error.str():
        hint = f"; {_VERIFY}"
    return BrokerUnavailableError(f"{doing}: {error.str()}{hint}")


def unusable(topic: str, error: KafkaError) -> AccessRefusedError | BrokerUnavailableError:
    """The error to raise for a topic that existed when the job started and cannot be used now."""
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return TopicMissingError(f"topic {topic} was deleted; the job creates it again")
    return error_of_call(f"topic {topic} cannot be used", error)


def _is_no_entry(error: KafkaError | None) -> bool:
    if error is None or error.code() not in _NO_ENTRY:
        return False
    return not any(words in error.str() for words in _NO_VERDICT)
