"""The extras of the distribution: which one brings a package that is missing here."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

_EXTRAS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("jinja2", "markupsafe", "starlette", "uvicorn"), "serve"),
    **dict.fromkeys(("deltalake", "pyarrow", "pydantic", "rich", "typer"), "serve"),
    **dict.fromkeys(("tomli",) if sys.version_info < (3, 11) else (), "serve"),
    **dict.fromkeys(("confluent_kafka", "delta", "pandas", "py4j", "pyspark"), "stream"),
    "matplotlib": "stream,demo",
}


def remedy(error: ModuleNotFoundError) -> str | None:
    """What to install after this error of an import, in words; None for a module that no extra brings."""
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    return extra and f"this command needs the package {package}: pip install 'lagwise[{extra}]'"


def lacking(extra: str) -> str | None:
    """What to install for an extra, in words; None if nothing is missing, as far as that shows without loading it."""
    for package, brought_by in _EXTRAS.items():
        if brought_by == extra and find_spec(package) is None:
            return f"it needs the package {package}: pip install 'lagwise[{extra}]'"
    return None
