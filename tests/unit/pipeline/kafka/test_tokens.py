"""Tokens of one process: called for seldom, renewed in time, and nobody hangs with a function that does."""

import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from pipeline.errors import AuthenticationError, BrokerUnavailableError
from pipeline.kafka import tokens
from pipeline.kafka.client import resolve
from pipeline.kafka.errors import client_with_reason, error_of_call
from pipeline.kafka.token_function import TokenError
from pipeline.kafka.tokens import TokenSource, ready

_REFUSED = KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED, "invalid_token")


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module whose function `token` a test sets."""
    module = ModuleType("tokens_of_test")
    monkeypatch.setitem(__import__("sys").modules, module.__name__, module)
    monkeypatch.setattr(tokens, "_sources", {})
    return module


class Clock:
    """Both clocks of the module."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = time.time()
        monkeypatch.setattr(tokens.time, "time", lambda: self.now_s)
        monkeypatch.setattr(tokens.time, "monotonic", lambda: self.now_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def source(provider: ModuleType, function: Callable[..., Any], *, timeout_s: float = 5.0) -> TokenSource:
    provider.token = function  # type: ignore[attr-defined]
    return TokenSource("tokens_of_test:token", "", timeout_s=timeout_s)


def numbered(clock: Clock, *, life_s: float) -> Callable[[], tuple[str, float]]:
    numbers = iter(range(1000))
    return lambda: (f"t{next(numbers)}", clock.now_s + life_s)


def failing() -> None:
    raise ValueError("no role")


def test_one_call_serves_all_clients_until_the_token_has_lived_for_most_of_its_life(
    provider: ModuleType, clock: Clock
) -> None:
    of = source(provider, numbered(clock, life_s=100))

    assert {of.token().text for _ in range(5)} == {"t0"}
    clock.now_s += 69
    assert of()[0] == "t0"
    # librdkafka asks when 80 % are over.
    clock.now_s += 2
    assert [of()[0], of.token().text] == ["t1", "t1"]


def test_librdkafka_is_given_the_last_token_while_the_function_fails_and_a_dead_one_afterwards(
    provider: ModuleType, clock: Clock
) -> None:
    of = source(provider, numbered(clock, life_s=100))
    of.token()
    provider.token = failing  # type: ignore[attr-defined]
    broken = TokenSource("tokens_of_test:token", "", timeout_s=5.0)
    broken._token = of._token

    clock.now_s += 80
    assert broken()[0] == "t0"
    assert "ValueError: no role" in (broken.trouble or "")
    clock.now_s += 21
    text, expires_s = broken()

    assert expires_s < clock.now_s
    assert text != "t0"


def test_new_clients_log_in_with_the_last_token_until_it_expires_while_the_function_fails(
    provider: ModuleType, clock: Clock
) -> None:
    answers: list[Callable[[], Any]] = [numbered(clock, life_s=100), failing, failing]

    def next_answer() -> Any:
        return answers.pop(0)()

    of = source(provider, next_answer)
    of.token()

    clock.now_s += 80
    assert ready({"oauth_cb": of})["oauth_cb"] is of
    assert "ValueError: no role" in (of.trouble or "")
    clock.now_s += 21
    with pytest.raises(KafkaException, match="ValueError: no role"):
        ready({"oauth_cb": of})


def test_function_that_works_again_ends_the_trouble_and_both_are_said_once(
    provider: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[Callable[[], Any]] = [failing, failing, lambda: ("a", time.time() + 60)]

    def next_answer() -> Any:
        return answers.pop(0)()

    of = source(provider, next_answer)
    caplog.set_level("INFO")

    for _ in range(2):
        with pytest.raises(TokenError, match="ValueError: no role"):
            of.token()
    assert of.token().text == "a"

    assert of.trouble is None
    assert [one.getMessage() for one in caplog.records] == [
        "no token for Kafka",
        "kafka.token_provider tokens_of_test:token returns tokens again",
    ]


def test_function_that_hangs_is_waited_for_as_long_as_a_broker_and_called_again_after_a_minute(
    provider: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, calls = threading.Event(), []

    def hangs() -> tuple[str, float]:
        calls.append(threading.current_thread())
        if len(calls) == 1:
            let_go.wait(60)
        return "a", time.time() + 60

    of = source(provider, hangs, timeout_s=0.05)
    for _ in range(2):
        with pytest.raises(TokenError, match=r"token has not returned within 0\.05 s; .* a time-out"):
            of.token()
    assert len(calls) == 1
    monkeypatch.setattr(tokens, "_HUNG_S", 0.0)
    of._timeout_s = 30

    assert of.token().text == "a"
    assert len(calls) == 2
    let_go.set()


def test_clients_that_ask_at_once_wait_for_the_same_call(provider: ModuleType) -> None:
    let_go, calls, got = threading.Event(), [], []

    def slow() -> tuple[str, float]:
        calls.append(1)
        let_go.wait(30)
        return "a", time.time() + 60

    of = source(provider, slow, timeout_s=30)
    asking = [threading.Thread(target=lambda: got.append(of.token().text)) for _ in range(4)]
    for one in asking:
        one.start()
    let_go.set()
    for one in asking:
        one.join(30)

    assert (got, calls) == (["a"] * 4, [1])


def properties(**more: str) -> dict[str, Any]:
    return resolve({"token_provider": "tokens_of_test:token", "socket.timeout.ms": "5000", **more})


def test_client_is_not_made_without_a_token_and_the_error_is_one_that_waiting_cures(
    provider: ModuleType,
) -> None:
    provider.token = failing  # type: ignore[attr-defined]

    with pytest.raises(BrokerUnavailableError, match=r"kafka\.token_provider .* ValueError: no role"):
        client_with_reason(lambda _: pytest.fail("was made"), properties())
    with pytest.raises(KafkaException) as raised:
        ready(properties())
    assert isinstance(error_of_call("a", raised.value.args[0]), BrokerUnavailableError)


def test_refusal_of_a_broker_while_there_is_no_new_token_is_no_verdict_on_the_user(
    provider: ModuleType,
) -> None:
    provider.token = lambda: ("a", time.time() + 60)  # type: ignore[attr-defined]
    assert isinstance(error_of_call("a", _REFUSED), AuthenticationError)
    of = ready(properties())["oauth_cb"]
    assert isinstance(error_of_call("a", _REFUSED), AuthenticationError)
    of._renewed_at_s, of._function = 0.0, failing
    of()

    error = error_of_call("a", _REFUSED)

    assert type(error) is BrokerUnavailableError
    assert "ValueError: no role" in str(error)


def test_clients_of_other_configurations_have_other_tokens(provider: ModuleType) -> None:
    provider.token = lambda config: (config, time.time() + 60)  # type: ignore[attr-defined]
    one, other = (properties(**{"sasl.oauthbearer.config": text})["oauth_cb"] for text in ("a", "b"))

    assert (one()[0], other()[0]) == ("a", "b")
    assert properties(**{"sasl.oauthbearer.config": "a"})["oauth_cb"] is one


def test_properties_without_a_provider_have_no_callback() -> None:
    assert resolve({"bootstrap.servers": "b:1"}) == {"bootstrap.servers": "b:1"}
