"""The units: systemd knows every word of them, and they give the processes no right that they do not need."""

import re
import resource
from configparser import ConfigParser
from pathlib import Path

import pytest

from pipeline.config.load import load
from pipeline.operate.serve.listener.connections import Connections
from tests.deploy.chart import ROOT
from tests.deploy.tools import said, system_tool

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
_MOST_EXPOSED = "15"
"""1.5 of 10; above 2.0 systemd does not call it good any more."""


@pytest.fixture
def copies(tmp_path: Path) -> list[Path]:
    """The units with a program that is there on every machine."""
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        assert text.count("\nExecStart=/opt/lagwise/bin/lagwise ") == 1
        (tmp_path / unit.name).write_text(
            text.replace("ExecStart=/opt/lagwise/bin/lagwise", "ExecStart=/bin/true")
        )
    return sorted(tmp_path.glob("*.service"))


def settings(unit: Path) -> ConfigParser:
    found = ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(unit.read_text(encoding="utf-8"))
    return found


def verify(*units: Path, refused: bool = False) -> str:
    return said([system_tool("systemd-analyze", "systemd"), "verify", *units], refused=refused)


def test_systemd_knows_every_word(copies: list[Path]) -> None:
    assert verify(*copies) == ""


def test_a_word_that_systemd_does_not_know_is_found(copies: list[Path]) -> None:
    copies[0].write_text(copies[0].read_text().replace("RestartSec=", "RestartSecs="))

    assert "Unknown key 'RestartSecs'" in verify(*copies).replace("key name", "key")


def test_units_are_hardly_exposed(copies: list[Path]) -> None:
    for unit in copies:
        command = [system_tool("systemd-analyze", "systemd"), "security", "--offline=true"]
        assert "OK" in said([*command, f"--threshold={_MOST_EXPOSED}", unit])


def test_less_hardening_is_found(copies: list[Path]) -> None:
    copies[0].write_text(
        copies[0].read_text().replace("PrivateUsers=yes\n", "").replace("ProtectProc=invisible\n", "")
    )

    command = [system_tool("systemd-analyze", "systemd"), "security", "--offline=true"]
    said([*command, f"--threshold={_MOST_EXPOSED}", copies[0]], refused=True)


def test_page_has_file_handles_for_all_connections_that_it_takes() -> None:
    handles = int(settings(ROOT / "deploy" / "systemd" / "lagwise-serve.service")["Service"]["LimitNOFILE"])
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(handles, most), most))
    try:
        allowed = Connections().most
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))

    # What the page says of it: all of them, and not what handles are left for.
    said = re.search(r"(\d+) connections", (ROOT / "deploy" / "docs" / "page.md").read_text(encoding="utf-8"))
    assert said is not None
    assert allowed == int(said[1])


def test_driver_has_more_file_handles_than_the_default_of_1024() -> None:
    service = settings(ROOT / "deploy" / "systemd" / "lagwise.service")["Service"]

    assert int(service["LimitNOFILE"]) == 65_536


def test_driver_is_not_started_again_after_another_has_taken_over() -> None:
    service = settings(ROOT / "deploy" / "systemd" / "lagwise.service")["Service"]

    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("on-failure", "4")
    # Told to stop is lagwise alone: its JVM would leave in the middle of a batch.
    assert service["KillMode"] == "mixed"


def test_configuration_finds_tables_and_password_where_the_unit_puts_them() -> None:
    config = load(ROOT / "conf" / "examples" / "systemd.toml")
    service = settings(ROOT / "deploy" / "systemd" / "lagwise.service")["Service"]

    credential = service["LoadCredential"].partition(":")[0]
    assert config.kafka.properties["sasl.password"] == f"file:/run/credentials/lagwise.service/{credential}"
    assert config.tables.root.startswith(f"/var/lib/{service['StateDirectory']}/")


def test_what_serves_may_write_nothing() -> None:
    service = settings(ROOT / "deploy" / "systemd" / "lagwise-serve.service")["Service"]

    assert service["ProtectSystem"] == "strict"
    assert not {"StateDirectory", "ReadWritePaths"} & service.keys()
