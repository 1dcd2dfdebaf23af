"""Options of strategies: one of several words, or a number with a unit and a range."""

from dataclasses import dataclass
from typing import TypeAlias

OptionValue: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An option that takes one of a few words."""

    name: str
    words: tuple[str, ...]
    """Its valid words; the first is the default."""

    @property
    def default(self) -> str:
        """The value when none is given."""
        return self.words[0]

    def problem(self, value: object) -> str | None:
        """What is wrong with a given value; None when nothing is."""
        return None if value in self.words else f"must be one of {', '.join(self.words)}, got {value!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """An option that takes a number."""

    name: str
    default: int | float | None
    """The value when none is given; None leaves it to the strategy, and may then be given as well."""
    unit: str
    low: int | float = 0
    """Its minimum."""
    high: int | float
    """Its maximum."""
    is_whole: bool = False

    def problem(self, value: object) -> str | None:
        """What is wrong with a given value; None when nothing is."""
        if value is None and self.default is None:
            return None
        kinds = int if self.is_whole else int | float
        # A boolean is an int to Python; NaN is in no range.
        if isinstance(value, kinds) and not isinstance(value, bool) and self.low <= value <= self.high:
            return None
        kind = "a whole number" if self.is_whole else "a number"
        return f"must be {kind} from {self.low} to {self.high} ({self.unit}), got {value!r}"


Option: TypeAlias = Choice | Number
