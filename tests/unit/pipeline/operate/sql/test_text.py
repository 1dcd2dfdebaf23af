import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pipeline.operate.sql import text
from pipeline.operate.sql.text import cell, show_rows

_AT = datetime(2026, 1, 31, 3, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.53214, "0.532"),
        (1_234_567.0, "1234567"),
        (0.0, "0"),
        (0.000012345, "1.23e-05"),
        (True, "true"),
        (_AT, "2026-01-31T03:00:00Z"),
        # A version is found by its time again.
        (_AT + timedelta(milliseconds=45), "2026-01-31T03:00:00.045Z"),
        (timedelta(seconds=90), "0:01:30"),
        (Decimal("1.50"), "1.50"),
        (["a", None], '["a", null]'),
        ({"at": _AT}, '{"at": "2026-01-31T03:00:00.000000Z"}'),
        ("a\x1b[2J", r"a\x1b[2J"),
        (b"\x01\xff", "01ff"),
    ],
)
def test_value_reads(value: Any, shown: str) -> None:
    assert cell(value) == shown


_ROW = {
    "whole": Decimal(12345678901234567890),
    "part": Decimal("0.25"),
    "ago": timedelta(minutes=2, milliseconds=500),
    "at": _AT,
    "key": b"\x00a",
    "nested": [{"ago": timedelta(seconds=1)}],
}


def test_json_has_numbers_for_decimals_and_seconds_for_spans(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(pa.Table.from_pylist([_ROW]), output="json")

    (found,) = json.loads(capsys.readouterr().out)
    assert found == {
        "whole": 12345678901234567890,
        "part": 0.25,
        "ago": 120.5,
        "at": "2026-01-31T03:00:00.000000Z",
        "key": "0061",
        "nested": [{"ago": 1.0}],
    }


def test_json_has_null_for_what_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"n": float("nan"), "i": [float("inf")], "d": 0.5}

    show_rows(pa.Table.from_pylist([row]), output="json")

    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == [
        {"n": None, "i": [None], "d": 0.5}
    ]


def test_csv_has_every_digit_of_a_decimal_and_seconds_for_spans(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(pa.Table.from_pylist([{"a": Decimal("0.0000000001"), "b": timedelta(seconds=9)}]), output="csv")

    assert capsys.readouterr().out == "a,b\n0.0000000001,9.0\n"


def test_pipe_gets_a_table_that_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(pa.table({"name": ["a" * 300], "n": [5]}), output="table")

    assert capsys.readouterr().out == f"name{' ' * 296}  n\n{'a' * 300}  5\n"


def test_plan_of_a_query_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(pa.table({"plan": ["== Plan ==\n  Scan\x1b\n"]}), output="table")

    assert capsys.readouterr().out == "== Plan ==\n  Scan\\x1b\n"


def test_terminal_that_is_too_narrow_gets_records(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class _Narrow:
        is_terminal, width = True, 20

    monkeypatch.setattr(text, "Console", _Narrow)

    show_rows(pa.table({"topic": ["payments", "x"], "lag_seconds": [1.5, None]}), output="table")

    assert capsys.readouterr().out == (
        "-- 1 --\ntopic        payments\nlag_seconds  1.5\n-- 2 --\ntopic        x\nlag_seconds  -\n"
    )
