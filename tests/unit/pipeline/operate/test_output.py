"""What reaches a terminal, and what a pipe."""

import csv
import io
import json
import sys

import pyarrow as pa
import pytest

from pipeline.operate.output import Column, show

HOSTILE = 'a\x1b[2J\r\n\x9b31m\u202eb"\0,'
_COLUMNS = (Column(header="GROUP", name="group"), Column(header="TOPICS", name="topics"))
_ROWS = pa.table({"group": [HOSTILE, None], "topics": [[HOSTILE], None]})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(stdout: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stdout", stdout)
    show(_ROWS, _COLUMNS, output="csv")
    return stdout.getvalue()


def test_no_name_steers_a_terminal_that_is_shown_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(Terminal(), monkeypatch).splitlines()

    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert r"a\x1b[2J\r\n\x9b31m\u202eb" in lines[1]


def test_csv_in_a_pipe_holds_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(io.StringIO(), monkeypatch)

    quoted = HOSTILE.replace('"', '""')
    assert text.startswith(f'group,topics\n"{quoted}",')


def test_csv_is_read_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(io.StringIO(), monkeypatch).replace("\0", "")

    group = HOSTILE.replace("\0", "")
    topics = json.dumps([HOSTILE])
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["group", "topics"],
        [group, topics],
        ["", ""],
    ]
