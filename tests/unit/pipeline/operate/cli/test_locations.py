from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import ConfigError
from pipeline.operate.cli.locations import find, find_config, place_of


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LAGWISE_TABLES", raising=False)
    monkeypatch.delenv("LAGWISE_CONFIG", raising=False)


@pytest.fixture
def config_file() -> Callable[[str, str], Path]:
    def _write(name: str, root: str) -> Path:
        file = Path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"[tables]\nroot = '{root}'\n[trigger]\ninterval_s = 7\n", encoding="utf-8")
        return file

    return _write


def test_option_wins_over_environment(config_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_TABLES", "/env/tables")
    monkeypatch.setenv("LAGWISE_CONFIG", str(config_file("env.toml", "/env/config")))

    assert find("/option", None).tables.root == "/option"
    assert find(None, config_file("x.toml", "/option/config")).tables.root == "/option/config"
    assert find(None, None).tables.root == "/env/tables"


def test_folder_and_config_together_take_the_rest_from_the_config(config_file: Any) -> None:
    source = find("/option", config_file("x.toml", "/other"))

    assert (source.tables.root, source.config.trigger.interval_s) == ("/option", 7)


def test_config_of_the_environment_is_read(config_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGWISE_CONFIG", str(config_file("env.toml", "/env/config")))

    assert find(None, None).tables.root == "/env/config"
    assert find_config(None) == Path("env.toml")


def test_config_of_the_folder_counts_once_its_tables_exist(config_file: Any) -> None:
    config_file("conf/lagwise.toml", "tables")
    Path(".lagwise/demo/tables").mkdir(parents=True)

    before = find(None, None).tables.root
    Path("tables").mkdir()
    after = find(None, None).tables.root

    assert (before, after) == (".lagwise/demo/tables", "tables")


def test_url_in_the_config_of_the_folder_counts_at_once(config_file: Any) -> None:
    config_file("conf/lagwise.toml", "s3a://bucket/tables")

    assert find(None, None).tables.root == "s3a://bucket/tables"


def test_nothing_anywhere_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"--tables DIR or --config FILE .*lagwise demo"):
        find(None, None)


def test_storage_options_are_resolved_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "hunter2")
    Path("x.toml").write_text(
        "[tables.storage_options]\nAWS_SECRET_ACCESS_KEY = 'env:MY_KEY'\n", encoding="utf-8"
    )

    source = find(None, Path("x.toml"))

    assert source.tables.storage_options == {"AWS_SECRET_ACCESS_KEY": "hunter2"}
    assert "hunter2" not in repr(source)


@pytest.mark.parametrize("root", ["file://{}", "{}/", "{}/../{name}"])
def test_folder_is_the_same_place_in_all_its_writings(tmp_path: Path, root: str) -> None:
    assert place_of(root.format(tmp_path, name=tmp_path.name)) == place_of(str(tmp_path))
