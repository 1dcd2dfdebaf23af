"""Rejects a version of a client library that an adapter does not support, before it fails in its own way."""

import pkgutil
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from assignor.errors import AssignorError


class UnsupportedClientError(AssignorError, ImportError):
    """The client library is missing, or its version is unsupported; the message says what to install."""


def require(
    name: str, *, least: tuple[int, ...], below: tuple[int, ...], parts: Sequence[str], extra: str
) -> None:
    """Return if the library can be used.

    Args:
        name: Of the distribution.
        least: First version that was tried.
        below: First version that is refused again; empty for none.
        parts: What the adapter leans on, as `pkgutil.resolve_name` takes it.
        extra: Of lagwise-follow, which installs the library.

    Raises:
        UnsupportedClientError: It cannot.
    """
    wanted = f"{name}>={_dotted(least)}" + (f",<{_dotted(below)}" if below else "")
    remedy = f"install it with: pip install 'lagwise-follow[{extra}]' '{wanted}'"
    try:
        found = version(name)
    except PackageNotFoundError as error:
        raise UnsupportedClientError(f"{name} is not installed; lagwise needs {wanted}: {remedy}") from error
    numbers = tuple(map(int, re.findall(r"\d+", found)[: len(least)]))
    missing = [part.replace(":", ".") for part in parts if not _is_there(part)]
    if least <= numbers and (not below or numbers < below) and not missing:
        return
    lacks = f"it has no {', '.join(missing)}" if missing else "its internals may differ"
    raise UnsupportedClientError(
        f"{name} {found} cannot follow plans: {lacks}; lagwise needs {wanted}: {remedy}"
    )


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _is_there(part: str) -> bool:
    try:
        pkgutil.resolve_name(part)
    except (ImportError, AttributeError):
        return False
    return True
