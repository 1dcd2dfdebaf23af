"""The configuration: a TOML file, read and checked as a whole.

`load` tells every problem at once, one line each, with the file, the key and what to write instead.
"""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.config.model import Config
from pipeline.config.names import advice
from pipeline.errors import ConfigError

# The same library: in the standard library since 3.11, from the index before.
tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

# Whatever stands in these tables may be a secret, so a message never quotes a value of theirs.
_FREE_TABLES = ("kafka", "spark", "storage_options", "options")
_WORDS = {
    "a valid dictionary": "a table",
    "a valid string": "a string",
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "a valid tuple": "an array",
    "greater than or equal to": "at least",
    "Field required": "missing",
    "String should have": "must have",
}


def load(path: str | Path) -> Config:
    """The configuration in the TOML file `path`; what the file leaves out has its default.

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
    # `input` is looked at for its type, and quoted only outside the tables that may hold secrets.
    for problem in error.errors(include_url=False, include_context=False):
        location = problem["loc"]
        key = _dotted(location)
        if problem["type"] == "extra_forbidden":
            yield f"{key}: unknown key; {advice(location)}"
        else:
            yield f"{key}: {_sentence(problem['msg'])}{_got(location, problem['input'])}"


def _dotted(location: tuple[int | str, ...]) -> str:
    """`("plan", "groups", 0, "pattern")` as `plan.groups[0].pattern`."""
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return key.lstrip(".")


def _sentence(message: str) -> str:
    """Pydantic's message in the words of TOML: `must be ...`."""
    text = message.removeprefix("Value error, ").replace("Input should be", "must be")
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    return re.sub(r" or instance of \w+", "", text)


def _got(location: tuple[int | str, ...], value: object) -> str:
    if isinstance(value, dict):
        return ""
    kind = {str: "a string", bool: "a boolean", int: "a whole number", list: "an array"}.get(type(value))
    if any(part in _FREE_TABLES for part in location) or not isinstance(value, str | int | float):
        return f", not {kind or type(value).__name__}"
    return f", not {value!r}"
