"""The prompt of `lagwise sql`, at a terminal."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

from tests.support.operate.sql_recipes import written

_PROMPT = "lagwise> "
_WITHIN_S = 120.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# The terminal becomes that of the session, so that its Ctrl-C reaches every process of the command.
_COMMAND = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from pipeline.operate.cli.entry import main
main()
"""


class Terminal:
    """The command at a terminal of its own."""

    def __init__(self, tables: Path, home: Path) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, "sql", "--tables", str(tables)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "XDG_STATE_HOME": str(home), "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        self._unread = ""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, text: str) -> str:
        """What is shown up to the text, which is waited for."""
        deadline = time.monotonic() + _WITHIN_S
        while text not in self._unread:
            assert time.monotonic() < deadline, f"waited in vain for {text!r} after {self._unread!r}"
            if select.select([self._ours], [], [], 1.0)[0]:
                self._unread += _ESCAPES.sub("", os.read(self._ours, 65_536).decode(errors="replace"))
        shown, _, self._unread = self._unread.partition(text)
        return shown

    def answer(self, line: str, text: str) -> str:
        """What a line is answered with, up to the text; the prompt is there again."""
        self.type(f"{line}\n")
        shown = self.until(text)
        self.until(_PROMPT)
        return shown

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


def test_prompt_answers_survives_ctrl_c_and_refusals_and_ends_with_ctrl_d(tmp_path: Path) -> None:
    tables, home = tmp_path / "tables", tmp_path / "home"
    written(tables)
    terminal = Terminal(tables, home)
    try:
        terminal.until(_PROMPT)
        assert "partition_lag" in terminal.answer("tables", "quarantine")
        terminal.type("SELECT group_id, sum(lag) AS lag FROM partition_lag\n")
        terminal.until("...> ")
        assert "5700" in terminal.answer("GROUP BY group_id;", "5 rows")
        terminal.type("SELECT sum(id % 7) FROM range(100000000000);\n")
        terminal.until("running")
        terminal.type("\x03")
        terminal.until("cancelled")
        terminal.until(_PROMPT)
        assert "DROP" in terminal.answer("DROP TABLE acks;", "is refused, and nothing was run")
        # Ctrl-C reached neither the JVM nor the shell.
        assert "42" in terminal.answer("SELECT 6 * 7;", "1 row")
        terminal.type("\x04")
        assert terminal.process.wait(_WITHIN_S) == 0
    finally:
        terminal.close()

    kept = (home / "lagwise" / "sql_history").read_text(encoding="utf-8")
    assert "SELECT group_id, sum(lag) AS lag FROM partition_lag GROUP BY group_id;" in kept.splitlines()
