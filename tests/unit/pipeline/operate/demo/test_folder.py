from pathlib import Path

import pytest

from pipeline.config.load import load
from pipeline.errors import ConfigError
from pipeline.operate.demo.folder import ROOT, occupied


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("keep", [True, False], ids=["keep", "remove"])
def test_folder_is_left_only_when_it_is_to_be_kept(keep: bool) -> None:
    with occupied(keep=keep) as folder:
        folder.log.write_text("x")

    assert folder.log.exists() == ROOT.exists() == keep


def test_folder_stays_when_something_failed() -> None:
    with pytest.raises(ZeroDivisionError), occupied(keep=False) as folder:
        folder.log.write_text(str(1 / 0))

    assert ROOT.is_dir()


def test_what_an_earlier_demo_left_is_gone_and_nothing_else() -> None:
    neighbour = ROOT.parent / "tables"
    (ROOT / "tables").mkdir(parents=True)
    neighbour.mkdir()

    with occupied(keep=False):
        left = list(ROOT.iterdir())

    assert left == []
    assert neighbour.is_dir()


def test_second_demo_in_one_place_is_refused_and_harms_nothing() -> None:
    with occupied(keep=False) as folder:
        folder.log.write_text("x")

        with pytest.raises(ConfigError, match="another demo runs in"), occupied(keep=False):
            pass

        assert folder.log.read_text() == "x"


def test_written_configuration_has_the_address_of_the_demos_broker() -> None:
    with occupied(keep=False) as folder:
        folder.write_config("127.0.0.1:29092")
        config = load(folder.config)

    assert config.kafka.properties["bootstrap.servers"] == "127.0.0.1:29092"
    assert config.tables.root == str(folder.tables)
