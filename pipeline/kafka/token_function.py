"""The user's token function: found by its name and called; its result is checked.

Its contract is that of librdkafka's `oauth_cb`: called with the text of `sasl.oauthbearer.config`, or without arguments
if it takes none, it returns `(token, expiry[, principal[, extensions]])`, with the expiry in seconds since 1970.
"""

import inspect
import re
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from pipeline.errors import ConfigError

_KEY = "kafka.token_provider"
_LONGEST_S = 10 * 365 * 86_400
_LONGEST_TEXT = 300
_IN_URLS = re.compile(r"(?<=://)[^/\s@]+(?=@)|(?<=\?)[^\s'\"]+")
"""User and password, and the query."""


class TokenError(Exception):
    """The function returned no usable token; the text names the function, the cause and what to do."""


class Token(NamedTuple):
    """A token as `oauth_cb` returns it."""

    text: str
    expires_s: float
    """Seconds since 1970."""
    rest: tuple[Any, ...] = ()
    """Principal and extensions, if the function returns them."""

    def __repr__(self) -> str:
        """Omit the token itself."""
        return f"Token(expires_s={self.expires_s})"


def load_function(name: str) -> Callable[..., Any]:
    """The function of this name, `module:function`.

    Raises:
        ConfigError: There is no such module or function on this machine.
    """
    module_name, _, path = name.partition(":")
    try:
        found: Any = import_module(module_name)
    except Exception as error:
        raise ConfigError(
            f"{_KEY}: module {module_name} cannot be imported on this machine: {one_line(error)}; install it for the "
            "Python that runs lagwise, on every host of driver and executors, or add its folder to PYTHONPATH there"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"{_KEY}: module {module_name} has no {path}; correct the name")
        found = getattr(found, part)
    if not callable(found):
        raise ConfigError(f"{_KEY}: {name} is a {type(found).__name__}; name a function that returns a token")
    function: Callable[..., Any] = found
    return function


def call(name: str, function: Callable[..., Any], config: str) -> Token:
    """A token that the function returns now for the text of `sasl.oauthbearer.config`.

    Raises:
        TokenError: It raises, or returns something else.
    """
    try:
        returned = function(config) if _takes_config(function) else function()
    except Exception as error:
        raise TokenError(
            f"{_KEY} {name} failed: {one_line(error)}; nothing can log in to Kafka until it returns a token: call it "
            "by hand as the user of this process"
        ) from error
    return _checked(name, returned)


def one_line(error: BaseException) -> str:
    """Type and text of an error on one line, without secrets in URLs."""
    text = _IN_URLS.sub("…", " ".join(str(error).split()))[:_LONGEST_TEXT]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _takes_config(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind("")
    except TypeError:
        return False
    except ValueError:
        # A function in C has no signature; the contract has an argument.
        return True
    return True


def _checked(name: str, returned: Any) -> Token:
    problem = _problem_of_shape(returned) or _problem_of_expiry(float(returned[1]))
    if problem is not None:
        raise TokenError(f"{_KEY} {name} {problem}")
    text, expires_s, *rest = returned
    # confluent-kafka accepts no mapping but a dict, and never asks again after another one.
    return Token(text, float(expires_s), (*rest[:1], *map(dict, rest[1:])))


def _problem_of_shape(returned: Any) -> str | None:
    """What is wrong with the types, without any value: it may be a token."""
    if not isinstance(returned, tuple | list) or len(returned) not in _LENGTHS:
        what = type(returned).__name__
        if isinstance(returned, tuple | list):
            what += f" of {len(returned)}"
        return f"returned a {what}; return (token, expiry in seconds since 1970[, principal[, extensions]])"
    problems = (check(value) for check, value in zip(_CHECKS, returned, strict=False))
    return next((problem for problem in problems if problem is not None), None)


def _problem_of_token(token: Any) -> str | None:
    if not isinstance(token, str):
        return f"returned a token that is a {type(token).__name__}; return it as a str"
    if not token:
        return "returned an empty token"
    if any(sign.isspace() for sign in token):
        return "returned a token with white space in it; strip it"
    if not _is_plain(token):
        return "returned a token with characters outside printable ASCII; return it as the issuer wrote it"
    return None


def _problem_of_number(expiry: Any) -> str | None:
    if isinstance(expiry, bool) or not isinstance(expiry, int | float):
        return f"returned an expiry that is a {type(expiry).__name__}; return seconds since 1970 as a number"
    return None


def _problem_of_principal(principal: Any) -> str | None:
    if not isinstance(principal, str):
        return f"returned a principal that is a {type(principal).__name__}; return it as a str"
    return None if _is_plain(principal) else "returned a principal with characters outside printable ASCII"


def _problem_of_extensions(extensions: Any) -> str | None:
    if not isinstance(extensions, Mapping) or not all(
        isinstance(one, str) for pair in extensions.items() for one in pair
    ):
        return "returned extensions that are not a dict of str to str"
    # RFC 7628, 3.1; extensions beyond it cost a client of confluent-kafka its tokens for good.
    is_allowed = all(
        name.isascii() and name.isalpha() and name != "auth" and _is_plain(value)
        for name, value in extensions.items()
    )
    return (
        None
        if is_allowed
        else "returned extensions whose names are not only letters, or whose values are not printable ASCII"
    )


_CHECKS = (_problem_of_token, _problem_of_number, _problem_of_principal, _problem_of_extensions)
_LENGTHS = range(2, len(_CHECKS) + 1)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _problem_of_expiry(expires_s: float) -> str | None:
    left_s = expires_s - time.time()
    if left_s <= 0:
        return (
            f"returned a token that expired {-left_s:,.0f} s ago; return a new one (seconds since 1970), and compare "
            "the clock of this machine"
        )
    if not left_s < _LONGEST_S:
        return "returned an expiry more than ten years ahead; return seconds since 1970, not milliseconds"
    return None
