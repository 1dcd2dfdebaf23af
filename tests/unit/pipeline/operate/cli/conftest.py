from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pipeline.operate.cli.app import app


@pytest.fixture
def command() -> Callable[..., Result]:
    """The command without any tables named."""

    def _run(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(app, arguments, catch_exceptions=False, **options)

    return _run
