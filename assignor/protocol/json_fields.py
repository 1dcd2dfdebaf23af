"""Strict access to somebody else's JSON object: the right type, or a `DecodeError` with the path."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from assignor.errors import DecodeError

MAX_INTEGER = 2**63 - 1


class Fields:
    """A JSON object whose fields are read by name; fields that nobody asks for are ignored.

    Errors of a field give its path and position 0, as a parsed document does not know where its fields stood.
    """

    __slots__ = ("_path", "_values")

    def __init__(self, values: Any, path: str) -> None:
        if not isinstance(values, dict):
            raise DecodeError(f"{path or 'document'}: not an object", position=0)
        self._values: Mapping[str, Any] = values
        self._path = path

    def has(self, name: str) -> bool:
        """Whether the field is there at all, null included."""
        return name in self._values

    def text(self, name: str) -> str:
        """A string."""
        value = self._value(name)
        if not isinstance(value, str):
            self._fail(name, "not a string")
        return self._encodable(value, name)

    def nullable_text(self, name: str) -> str | None:
        """A string, or None for null."""
        return None if self._value(name) is None else self.text(name)

    def boolean(self, name: str) -> bool:
        """True or false."""
        value = self._value(name)
        if not isinstance(value, bool):
            self._fail(name, "not true or false")
        return value

    def integer(self, name: str, *, least: int) -> int:
        """A whole number from `least` to 2^63 - 1, written without a fraction."""
        value = self._value(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_INTEGER:
            self._fail(name, f"not a whole number of at least {least}")
        return value

    def nullable_number(self, name: str) -> float | None:
        """A finite number, or None for null."""
        value = self._value(name)
        if value is None:
            return None
        number = value if isinstance(value, float) else float(self.integer(name, least=-MAX_INTEGER))
        if not math.isfinite(number):
            self._fail(name, "not a finite number")
        return number

    def fields(self, name: str) -> "Fields":
        """An object."""
        return Fields(self._value(name), self._join(name))

    def list_of_fields(self, name: str) -> list["Fields"]:
        """An array of objects."""
        values = self._value(name)
        if not isinstance(values, list):
            self._fail(name, "not an array")
        return [Fields(value, f"{self._join(name)}[{number}]") for number, value in enumerate(values)]

    def names(self) -> Iterator[str]:
        """The names of all fields, in their order, for an object that is a mapping."""
        for name in self._values:
            yield self._encodable(name, name)

    def _value(self, name: str) -> Any:
        if name not in self._values:
            self._fail(name, "missing")
        return self._values[name]

    def _encodable(self, text: str, name: str) -> str:
        # JSON can escape half a surrogate pair, which no UTF-8 can hold: it would fail where it is sent on.
        try:
            text.encode()
        except UnicodeEncodeError:
            self._fail(name, "holds half a surrogate pair")
        return text

    def _join(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _fail(self, name: str, problem: str) -> NoReturn:
        raise DecodeError(f"{self._join(name)!a}: {problem}", position=0)


def parse_fields(data: bytes) -> Fields:
    """The JSON object in `data`.

    Raises:
        DecodeError: Not UTF-8, not JSON (NaN and Infinity are not), nested too deep, not an object.
    """
    try:
        return Fields(json.loads(data.decode(), parse_constant=_refuse_constant), "")
    except UnicodeDecodeError as error:
        raise DecodeError("not UTF-8", position=error.start) from None
    except json.JSONDecodeError as error:
        raise DecodeError(f"not JSON: {error.msg}", position=error.pos) from None
    except ValueError as error:
        # An integer of more digits than Python turns into a number.
        raise DecodeError(f"not JSON: {error}", position=0) from None
    except RecursionError:
        raise DecodeError("not JSON: nested too deep", position=0) from None


def _refuse_constant(name: str) -> NoReturn:
    raise DecodeError(f"not JSON: {name}", position=0)
