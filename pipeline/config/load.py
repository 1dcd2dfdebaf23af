"""The configuration: a TOML file, read and checked as a whole.

`load` reports all problems at once, one line each, with the file, the key and what to write instead.
"""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.config.model import Config
from pipeline.config.names import advice
from pipeline.errors import ConfigError

# The same library, which is in the standard library since 3.11.
tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

# Any value in these tables may be a secret, so messages never quote one.
_FREE_TABLES = ("kafka", "spark", "storage_options", "options")
_SECRETS = ("token", "token_provider")
_MESSAGES = {
    "bool_type": "must be true or false",
    "dict_type": "must be a table",
    "greater_than_equal": "must be at least {ge:g}",
    "int_type": "must be a whole number",
    "less_than_equal": "must be at most {le:g}",
    "missing": "missing",
    "model_type": "must be a table",
    "string_type": "must be a string",
    "tuple_type": "must be an array",
}
"""Messages by pydantic's type of error, filled in from its context."""


def load(path: str | Path) -> Config:
    """The configuration in the TOML file `path`; missing keys have their defaults.

    Raises:
        ConfigError: The file is missing, unreadable, not TOML, or some key is unknown or has a wrong value.
            The message has one line per problem.
    """
    data = _parsed(Path(path))
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{path}: {line}" for line in _problems(error))) from None


def _parsed(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = 'copy conf/lagwise.toml there and set "bootstrap.servers"'
        raise ConfigError(f"{path}: no such file; {hint}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: byte {error.start} cannot be decoded") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    return data


def _problems(error: ValidationError) -> Iterator[str]:
    # The type of `input` is always named, its value only outside of the tables that may hold secrets.
    for problem in error.errors(include_url=False):
        location = problem["loc"]
        key = _dotted(location)
        if problem["type"] == "extra_forbidden":
            yield f"{key}: unknown key; {advice(location)}"
        else:
            yield f"{key}: {_sentence(problem)}{_got(location, problem['input'])}"


def _dotted(location: tuple[int | str, ...]) -> str:
    """`("plan", "groups", 0, "pattern")` as `plan.groups[0].pattern`."""
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return key.lstrip(".")


def _sentence(problem: ErrorDetails) -> str:
    """Our message for the type of error, or pydantic's, as the predicate of the key: `must be ...`."""
    ours = _MESSAGES.get(problem["type"])
    if ours is not None:
        return ours.format(**problem.get("ctx", {}))
    theirs = problem["msg"].removeprefix("Value error, ")
    return theirs.replace("Input should be", "must be").replace("String should have", "must have")


def _got(location: tuple[int | str, ...], value: object) -> str:
    if isinstance(value, dict) or any(part in _SECRETS for part in location):
        return ""
    kind = {str: "a string", bool: "a boolean", int: "a whole number", list: "an array"}.get(type(value))
    if any(part in _FREE_TABLES for part in location) or not isinstance(value, str | int | float):
        return f", not {kind or type(value).__name__}"
    return f", not {value!r}"
