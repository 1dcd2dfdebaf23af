"""What a reason that was written down says, read back: by which guard, for which cause, whether to an approval.

Held to the beginnings that `reasons` promises.
"""

import re

_GUARD = re.compile(r"held back by (\w+): ")
_FIGURE = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?")


def guard_of(reason: str | None) -> str | None:
    """Name of the guard that a reason says holds a plan back; None when none does."""
    held = _GUARD.match(reason or "")
    return held[1] if held else None


def cause_of(reason: str | None) -> str:
    """The cause in a reason without its figures, which differ each time; of a guard only its name."""
    guard = guard_of(reason)
    if guard is not None:
        return f"held back by {guard}"
    return _FIGURE.sub("#", (reason or "").split(";", maxsplit=1)[0])


def refuses_approval(reason: str | None) -> bool:
    """Whether an operator's approval is refused."""
    return (reason or "").startswith("approval refused: ")
