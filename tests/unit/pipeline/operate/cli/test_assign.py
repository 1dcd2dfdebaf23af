import json
from typing import Any

_CASE = '{"topics":{"t":2},"members":{"a":{"topics":["t"]},"b":{"topics":["t"]}},"lags":{"t":[9,1]}}'


def test_each_case_gets_a_line_in_order(command: Any) -> None:
    case = json.loads(_CASE)
    lines = "".join(json.dumps(case | {"id": name}) + "\n" for name in ("first", "second"))

    result = command("assign", "--strategy", "lag-aware", input=lines)

    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [answer["id"] for answer in answers] == ["first", "second"]
    assert answers[0]["assignment"] == {"a": {"t": [0]}, "b": {"t": [1]}}


def test_bad_case_is_exit_status_1_and_the_next_is_answered(command: Any) -> None:
    result = command("assign", "-s", "lag-aware", input=f"{{}}\n{_CASE}\n")

    bad, good = (json.loads(line) for line in result.stdout.splitlines())
    assert result.exit_code == 1
    assert "error" in bad
    assert "assignment" in good


def test_unknown_strategy_names_those_there_are(command: Any) -> None:
    result = command("assign", "-s", "best", input=_CASE)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "lag-aware" in result.stderr
