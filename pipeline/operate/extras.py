"""The extras of the distribution: which one brings a package that is missing here."""

from collections.abc import Mapping
from typing import Final

_EXTRAS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("jinja2", "markupsafe", "starlette", "uvicorn"), "serve"),
    **dict.fromkeys(("deltalake", "pyarrow", "pydantic", "rich", "tomli", "typer"), "serve"),
    **dict.fromkeys(("confluent_kafka", "delta", "pandas", "py4j", "pyspark"), "stream"),
    "matplotlib": "stream,demo",
}


def remedy(error: ModuleNotFoundError) -> str | None:
    """What to install, in words; None for a module that no extra brings.

    Args:
        error: What an import has raised.
    """
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    return extra and f"this command needs the package {package}: pip install 'lagwise[{extra}]'"
