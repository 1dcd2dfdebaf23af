"""What the user's function may be, and what of it is refused with a reason."""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pipeline.errors import ConfigError
from pipeline.kafka.token_function import Token, TokenError, call, load_function

_SECRET = "e30.of-a-token."  # noqa: S105 - must be in no message


def later(s: float = 60) -> float:
    return time.time() + s


@pytest.mark.parametrize(
    ("source", "name", "problem"),
    [
        (
            None,
            "no_such_tokens:token",
            "module no_such_tokens cannot be imported on this machine: ModuleNotFound",
        ),
        (
            "import no_such_sdk",
            "{}:token",
            "cannot be imported on this machine: .*No module named 'no_such_sdk'",
        ),
        ("raise OSError('no file')", "{}:token", "cannot be imported on this machine: OSError: no file"),
        ("", "{}:token", r"has no token; correct the name"),
        ("class A: pass", "{}:A.token", r"has no A\.token; correct the name"),
        ("token = 'abc'", "{}:token", "is a str; name a function that returns a token"),
    ],
    ids=["module", "module of it", "import", "function", "method", "text"],
)
def test_function_that_is_not_there_is_an_error_of_the_configuration_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, name: str, problem: str
) -> None:
    module = f"tokens_{abs(hash((source, name)))}"
    if source is not None:
        (tmp_path / f"{module}.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigError, match=f"^kafka.token_provider: .*{problem}"):
        load_function(name.format(module))
    sys.modules.pop(module, None)


def test_function_is_called_with_the_configuration_if_it_takes_an_argument_and_without_if_not() -> None:
    expires_s = later()
    given: list[Any] = []

    def takes(config: str) -> tuple[str, float]:
        given.append(config)
        return "a", expires_s

    assert call("m:f", takes, "scope=x") == Token("a", expires_s)
    assert call("m:f", lambda: ("b", expires_s), "scope=x") == Token("b", expires_s)
    assert call("m:f", lambda config="": (config, expires_s), "scope=x") == Token("scope=x", expires_s)
    assert given == ["scope=x"]


def test_principal_and_extensions_are_handed_on() -> None:
    expires_s = later()

    assert call("m:f", lambda: ("a", expires_s, "me"), "").rest == ("me",)
    assert call("m:f", lambda: ["a", int(expires_s), "me", {"b": "c"}], "").rest == ("me", {"b": "c"})


def fails() -> None:
    raise PermissionError("no role\n  for this host")


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (fails, "failed: PermissionError: no role for this host; nothing can log in .* call it by hand"),
        (lambda: None, r"returned a NoneType; return \(token, expiry in seconds since 1970"),
        (lambda: _SECRET, r"returned a str; return \(token"),
        (lambda: (_SECRET,), r"returned a tuple of 1; return \(token"),
        (lambda: (b"a", later()), "returned a token that is a bytes"),
        (lambda: ("", later()), "returned an empty token"),
        (lambda: (_SECRET + "\n", later()), "returned a token with white space in it; strip it"),
        (lambda: (_SECRET, str(later())), "returned an expiry that is a str"),
        (lambda: (_SECRET, True), "returned an expiry that is a bool"),
        (lambda: (_SECRET, time.time() - 5.4), "returned a token that expired 5 s ago; .* the clock"),
        (
            lambda: (_SECRET, later() * 1000),
            "returned an expiry more than ten years ahead; .* not milliseconds",
        ),
        (lambda: (_SECRET, float("nan")), "returned an expiry more than ten years ahead"),
        (lambda: (_SECRET, later(), 7), "returned a principal that is a int"),
        (lambda: (_SECRET, later(), "me", {"a": 1}), "returned extensions that are not a dict of str to str"),
    ],
)
def test_what_is_no_token_is_refused_with_the_name_and_the_remedy_and_never_shown(
    function: Callable[[], object], problem: str
) -> None:
    with pytest.raises(TokenError) as refused:
        call("m:f", function, "")

    assert re.match(f"kafka.token_provider m:f {problem}", str(refused.value)), str(refused.value)
    assert _SECRET not in str(refused.value)


def test_a_token_is_not_shown_by_its_representation() -> None:
    assert _SECRET not in repr(Token(_SECRET, 1.0))


def test_extensions_become_a_dict_because_the_client_takes_nothing_else() -> None:
    token = call("m:f", lambda: ("abc", later(), "me", MappingProxyType({"tenant": "x"})), "")

    assert token.rest == ("me", {"tenant": "x"})
    assert type(token.rest[1]) is dict


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (("tökén", 60), "a token with characters outside printable ASCII"),
        (("abc", 60, "m\0e"), "a principal with characters outside printable ASCII"),
        (("abc", 60, "me", {"bad key!": "x"}), "extensions whose names are not only letters"),
        (("abc", 60, "me", {"auth": "x"}), "extensions whose names are not only letters"),
        (("abc", 60, "me", {"tenant": "x\0"}), "extensions whose names are not only letters"),
    ],
)
def test_what_the_client_would_refuse_for_good_is_refused_with_its_reason(
    returned: tuple[Any, ...], problem: str
) -> None:
    with pytest.raises(TokenError, match=problem):
        call("m:f", lambda: (returned[0], later(returned[1]), *returned[2:]), "")


def test_secrets_in_urls_of_an_exception_are_not_repeated() -> None:
    def fails() -> None:
        raise ValueError("POST https://me:hunter2@idp/token?client_secret=S3CRET failed")

    with pytest.raises(TokenError, match="POST https://…@idp/token") as caught:
        call("m:f", fails, "")

    assert "S3CRET" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
