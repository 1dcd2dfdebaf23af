from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config.load import load
from pipeline.config.model import Config
from pipeline.errors import ConfigError

Loader = Callable[[str], Config]
Problems = Callable[[str], list[str]]


@pytest.fixture
def load_text(tmp_path: Path) -> Loader:
    def _load(text: str) -> Config:
        file = tmp_path / "x.toml"
        file.write_text(text, encoding="utf-8")
        return load(file)

    return _load


@pytest.fixture
def problems(load_text: Loader, tmp_path: Path) -> Problems:
    """Lines of the error that loading a text ends in, without the file's name in front."""

    def _problems(text: str) -> list[str]:
        with pytest.raises(ConfigError) as raised:
            load_text(text)
        return str(raised.value).replace(f"{tmp_path / 'x.toml'}: ", "").splitlines()

    return _problems
