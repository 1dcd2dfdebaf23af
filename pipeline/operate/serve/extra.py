"""The packages of the extra `lagwise[serve]`: whether they are there, asked without loading them."""

from importlib.util import find_spec

from pipeline.errors import MissingDependencyError

_PACKAGES = ("jinja2", "markupsafe", "starlette", "uvicorn")


def check() -> None:
    """Return if the page can be served.

    Raises:
        MissingDependencyError: A package is missing; the message has the command that installs it.
    """
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingDependencyError(
                f"lagwise serve needs the package {package}: pip install 'lagwise[serve]'"
            )
