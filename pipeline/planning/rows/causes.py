"""Parse a stored reason: its guard, its cause, and whether it refuses an approval.

Relies only on the beginnings that `reasons` promises.
"""

import re

_GUARD = re.compile(r"held back by (\w+): ")
_FIGURE = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?")


def guard_of(reason: str | None) -> str | None:
    """Return the name of the guard that holds a plan back by this reason; None if none does."""
    held = _GUARD.match(reason or "")
    return held[1] if held else None


def cause_of(reason: str | None) -> str:
    """The cause in a reason without its figures, which differ each time; of a guard only its name."""
    guard = guard_of(reason)
    if guard is not None:
        return f"held back by {guard}"
    return _FIGURE.sub("#", (reason or "").split(";", maxsplit=1)[0])


def refuses_approval(reason: str | None) -> bool:
    """Return whether the reason refuses an operator's approval."""
    return (reason or "").startswith("approval refused: ")
