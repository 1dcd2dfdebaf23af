import re
import resource
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from pipeline.operate.cli.app import COMMANDS, load_command, main
from tests.support.operate.table_world import World

_PROBE = """
import sys
from pipeline.operate.cli.app import main
try:
    main()
finally:
    print(*(name for name in ("pyspark", "confluent_kafka", "py4j") if name in sys.modules), file=sys.stderr)
"""


def _run(*arguments: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """The command in a process of its own, and the processor seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_name_that_the_encoding_of_the_output_lacks_does_not_end_a_listing(
    world: World, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    world.write("partition_lag", {"group_id": "Ω", "lag": 9}, {"group_id": "plain", "lag": 4})
    world.complete()

    done, _ = _run("lag", "--tables", str(world.root))
    doctor, _ = _run("doctor", "--tables", str(world.root), "--", "Ω")
    for_programs, _ = _run("lag", "--tables", str(world.root), "-o", "csv")

    assert [line.split()[0] for line in done.stdout.splitlines()] == ["GROUP", "plain", r"\u03a9"]
    assert done.returncode == 0
    assert "UnicodeEncodeError" not in doctor.stderr
    assert r"\u03a9" not in for_programs.stdout
    assert for_programs.returncode == 1


def test_help_loads_no_spark_and_no_client() -> None:
    done, cpu_s = _run("--help")

    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)
    assert done.stderr.strip() == ""
    assert cpu_s < 1.5


def test_reading_loads_no_spark_and_no_client(world: Any) -> None:
    world.write("partition_lag", {})

    done, cpu_s = _run("lag", "--tables", str(world.root))

    assert done.returncode == 0
    assert done.stderr.strip() == ""
    assert cpu_s < 2.0


def test_unexpected_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("by\nzero at https://a.blob/x?sig=SIGNATURE")

    monkeypatch.setattr("pipeline.operate.cli.app.app", broken)

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 1
    assert (
        capsys.readouterr().err
        == "lagwise: ZeroDivisionError: by zero at https://a.blob/x?… (LAGWISE_DEBUG=1 shows the traceback)\n"
    )


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"run"}))
def test_list_says_what_the_command_says(name: str) -> None:
    command = load_command(name)

    assert command.help.partition("\n")[0] == COMMANDS[name]


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"control", "config"}))
def test_help_has_an_example_and_exit_statuses(name: str) -> None:
    text = load_command(name).help

    assert f"Example: lagwise {name}" in text
    assert "Exit status: 0 " in text


@pytest.mark.parametrize("name", ["", *sorted(COMMANDS), "config check", "control tail"])
def test_help_fills_its_lines_and_cuts_no_name_at_80_columns(
    name: str, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    text = command(*name.split(), "-h").stdout

    prose = [one.strip() for one in text.partition("╭")[0].splitlines()]
    assert [one for one, after in pairwise(prose) if _has_room(one, after)] == []
    assert re.findall(r"--[a-z-]+…|<bool>|\[\[", text) == []


def _has_room(line: str, after: str) -> bool:
    """Whether the first word after a line would have fit into it."""
    return bool(line and after) and len(f"{line} {after.split(maxsplit=1)[0]}") <= 78


def test_help_prints_names_in_brackets(command: Any) -> None:
    assert "[serve] of the first applies" in " ".join(command("serve", "--help").stdout.split())


def test_unknown_command_is_exit_status_2(command: Any) -> None:
    result = command("lags")

    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_version_is_printed(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.operate.cli.app.version", lambda name: f"1.2.3 of {name}")

    assert command("--version").stdout == "lagwise 1.2.3 of lagwise\n"
