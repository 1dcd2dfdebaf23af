"""Tokens of SASL/OAUTHBEARER for all clients of this process: one call of the user's function serves them all.

librdkafka asks for a token from a thread of its own when a client is created, and again after 80% of the token's life,
whether or not the client is polled. The function runs in yet another thread, for which callers wait as long as for a
broker: whatever the function does, no client, batch or command hangs with it. Every process (driver, source, worker)
imports and calls the function for itself.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from pipeline.kafka.token_function import Token, TokenError, call, load_function

log = logging.getLogger(__name__)

CALLBACK = "oauth_cb"
"""The property of confluent-kafka."""
_RENEWED_AFTER_SHARE = 0.7
"""Share of a token's life after which it is renewed: before librdkafka asks, so that it never gets one twice."""
_HUNG_S = 60.0
"""Time after which a second call begins although the first has not returned; it doubles with each call."""
_TROUBLE_S = 30.0
"""Time for which the same failure is logged once; librdkafka asks again ten seconds after a failure."""
# librdkafka takes it for a failure, without a Python exception in its own thread.
_NONE = ("-", 1.0)


class _Call:
    """One call of the function, in its own thread."""

    def __init__(self, function: Callable[[], Token]) -> None:
        self.begun_s = time.monotonic()
        self.done = threading.Event()
        self.result: Token | BaseException | None = None
        self._function = function
        threading.Thread(target=self._run, name="lagwise-token", daemon=True).start()

    def _run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            self.result = error
        finally:
            self.done.set()


class TokenSource:
    """Returns tokens of one function; librdkafka calls it as its `oauth_cb`."""

    def __init__(self, name: str, config: str, *, timeout_s: float) -> None:
        """Load the function without calling it.

        Args:
            name: As `module:function`.
            config: Text of `sasl.oauthbearer.config`.
            timeout_s: Time to wait for a call.

        Raises:
            ConfigError: There is no such function on this machine.
        """
        self._name, self._config, self._timeout_s = name, config, timeout_s
        self._function = load_function(name)
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._renewed_at_s = 0.0
        self._call: _Call | None = None
        self._hanging = 0
        self._failed_at_s: float | None = None
        self._why = ""

    def __call__(self, _config: str = "") -> tuple[Any, ...]:
        """Serve librdkafka, which must not see an exception: the client's next call would raise it."""
        try:
            token = self.valid_token()
        except TokenError:
            return _NONE
        return (token.text, token.expires_s, *token.rest)

    def valid_token(self) -> Token:
        """As `token`; while the function fails, the last token until it expires.

        Raises:
            TokenError: The function fails or does not return in time, and no valid token is left.
        """
        try:
            return self.token()
        except TokenError:
            last = self._token
            if last is None or last.expires_s <= time.time():
                raise
            return last

    def token(self) -> Token:
        """The newest token, or a new one from the function if it is time for that.

        Raises:
            TokenError: The function fails, or does not return in time.
        """
        with self._lock:
            if self._token is not None and time.time() < self._renewed_at_s:
                return self._token
            under_way = self._under_way()
        if not under_way.done.wait(self._timeout_s):
            return self._failed(
                under_way,
                TokenError(
                    f"kafka.token_provider {self._name} has not returned within {self._timeout_s:g} s; nothing can "
                    "log in to Kafka until it does: see what it waits for, and give its own requests a time-out"
                ),
            )
        if isinstance(under_way.result, Token):
            return self._succeeded(under_way, under_way.result)
        return self._failed(under_way, under_way.result)

    @property
    def trouble(self) -> str | None:
        """Why there is no new token at present; None if there is one."""
        failed_at_s = self._failed_at_s
        if failed_at_s is None or time.monotonic() - failed_at_s > self._timeout_s + _TROUBLE_S:
            return None
        return self._why

    def _under_way(self) -> _Call:
        """The running call, or a new one."""
        before = self._call
        if before is not None and before.done.is_set():
            return before
        if before is not None and time.monotonic() - before.begun_s < _HUNG_S * (1 + self._hanging):
            return before
        if before is not None:
            self._hanging += 1
        try:
            self._call = _Call(lambda: call(self._name, self._function, self._config))
        except RuntimeError as error:
            # The process is ending, or has as many threads as it may.
            raise TokenError(f"kafka.token_provider {self._name} cannot be called: {error}") from error
        return self._call

    def _succeeded(self, ended: _Call, token: Token) -> Token:
        with self._lock:
            if self._call is ended:
                self._call, self._hanging = None, 0
                now_s = time.time()
                self._token, self._renewed_at_s = (
                    token,
                    now_s + _RENEWED_AFTER_SHARE * (token.expires_s - now_s),
                )
            was_failing, self._failed_at_s = self._failed_at_s is not None, None
        if was_failing:
            log.info("kafka.token_provider %s returns tokens again", self._name)
        return token

    def _failed(self, asked: _Call, error: object) -> Token:
        if not isinstance(error, TokenError):
            error = TokenError(f"kafka.token_provider {self._name} failed: {error}")
        with self._lock:
            if self._call is asked and asked.done.is_set():
                self._call = None
            is_news = self._failed_at_s is None
            self._failed_at_s, self._why = time.monotonic(), str(error)
        if is_news:
            log.warning("no token for Kafka", extra={"error": str(error)})
        raise error


_sources: dict[tuple[str, str], TokenSource] = {}
_sources_lock = threading.Lock()


def source_of(name: str, config: str, *, timeout_s: float) -> TokenSource:
    """The token source of this process.

    Args:
        name: As `module:function`.
        config: Text of `sasl.oauthbearer.config`.
        timeout_s: Time to wait for a call.

    Raises:
        ConfigError: There is no such function on this machine.
    """
    with _sources_lock:
        known = _sources.get((name, config))
    if known is not None:
        return known
    # Without the lock: a module whose import hangs blocks no other thread.
    made = TokenSource(name, config, timeout_s=timeout_s)
    with _sources_lock:
        return _sources.setdefault((name, config), made)


def ready(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties once there is a token for a client with them, if it needs one.

    A client that is created without one waits ten seconds for it, and does not tell why it got none.

    Raises:
        KafkaException: There is no token; its text names the cause.
    """
    source = properties.get(CALLBACK)
    if isinstance(source, TokenSource):
        try:
            source.valid_token()
        except TokenError as error:
            raise KafkaException(KafkaError(KafkaError._AUTHENTICATION, str(error))) from error
    return dict(properties)


def trouble() -> str | None:
    """Why clients of this process get no token at present; None if they do."""
    with _sources_lock:
        sources = list(_sources.values())
    return next((why for one in sources if (why := one.trouble) is not None), None)
