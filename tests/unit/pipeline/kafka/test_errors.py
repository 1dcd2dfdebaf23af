"""Which error a failed call to Kafka becomes, by what the call and the client say."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from pipeline.errors import AccessRefusedError, BrokerUnavailableError
from pipeline.kafka.errors import client_with_reason, error_of_call, explained

LOST, SLOW, DOWN = KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN
PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: invalid credentials")
CLOSED = KafkaError(LOST, "Connection refused")
BROKEN_OFF = KafkaError(KafkaError._AUTHENTICATION, "handshake failed: Local: Broker transport failure")
NO_TOKEN = KafkaError(KafkaError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: no answer")


class Client:
    """Has something to say once it is polled."""

    def __init__(self, words: tuple[KafkaError, ...], properties: dict[str, Any]) -> None:
        self._say: Callable[[KafkaError], None] = properties["error_cb"]
        self._words = words

    def poll(self, _timeout_s: float, /) -> None:
        for word in self._words:
            self._say(word)


@pytest.mark.parametrize(
    ("failure", "reported", "kind", "why"),
    [
        (LOST, (PASSWORD, KafkaError(DOWN)), AccessRefusedError, "invalid credentials"),
        (SLOW, (PASSWORD, CLOSED), AccessRefusedError, "invalid credentials"),
        (LOST, (CLOSED, KafkaError(DOWN)), BrokerUnavailableError, "Connection refused"),
        (LOST, (BROKEN_OFF,), BrokerUnavailableError, "handshake failed"),
        (LOST, (NO_TOKEN,), BrokerUnavailableError, "Failed to acquire"),
        (LOST, (), BrokerUnavailableError, "transport failure .*gives no reason"),
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            (CLOSED,),
            AccessRefusedError,
            "deploying-security.md lists the rights",
        ),
        (KafkaError.POLICY_VIOLATION, (PASSWORD,), BrokerUnavailableError, "Policy violation"),
    ],
    ids=["password", "one of two", "away", "breaks off", "no token", "silence", "right", "answer"],
)
def test_reason_is_what_was_reported_when_a_call_got_no_answer(
    failure: int, reported: tuple[KafkaError, ...], kind: type[Exception], why: str
) -> None:
    _, reason = client_with_reason(partial(Client, reported), {})

    with pytest.raises(kind, match=rf"^it failed: .*{why}"), explained("it failed", reason):
        raise KafkaException(KafkaError(failure))


@pytest.mark.parametrize(
    "reported",
    [
        "b:1/bootstrap: error:0A000086:SSL routines::certificate verify failed (after 28ms in state SSL_HANDSHAKE)",
        "SSL handshake failed: certificate verify failed: verify that ssl.ca.location is correct",
    ],
)
def test_certificate_that_is_not_trusted_comes_with_what_to_do_once(reported: str) -> None:
    error = error_of_call("the cluster cannot be used", KafkaError(KafkaError._SSL, reported))

    assert str(error).count("verify that ssl.ca.location is correct") == 1
