import json
from pathlib import Path
from typing import Any

import pytest

import assignor

_EXAMPLE = (Path(assignor.__file__).parent / "cases" / "examples" / "lag-sticky.json").read_text()
_SUMMARY = (
    "lag-sticky: 2 moves: the group is drained in 112 s instead of 5.45 min. No assignment takes less than "
    "112 s: partition invoices-0 alone takes 112 s on the fastest member that may read it: add partitions."
)
_CASE = {
    "topics": {"t": 2},
    "members": {
        "a": {"topics": ["t"], "owned": {"t": [0, 1]}, "capacity": 10},
        "b": {"topics": ["t"], "capacity": 10},
    },
    "lags": {"t": [900, 600]},
}


def told(command: Any, case: dict[str, Any], *arguments: str) -> list[list[str]]:
    """The words of each line of the explanation."""
    result = command("explain", *arguments, input=json.dumps(case))
    assert result.exit_code == 0, result.stderr
    return [line.split() for line in result.stdout.splitlines()]


def test_outcome_is_told_in_words_and_tables(command: Any) -> None:
    result = command("explain", input=_EXAMPLE)

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        _SUMMARY,
        "",
        "MEMBER     PARTITIONS  AFTER     LAG   AFTER  DRAINED-IN   AFTER  BOUND",
        "billing-1           3      1  180000   90000    5.45 min   112 s",
        "billing-2           3      4    7000   37000        10 s  61.7 s",
        "billing-3           3      4     500   60500     0.588 s  86.4 s",
        "(group)             9      9  187500  187500    5.45 min   112 s  112 s",
        "",
        "MOVE        FROM       TO           LAG  SOONER-BY  RECORD-SECONDS-SAVED",
        "invoices-1  billing-1  billing-3  60000      118 s             9,630,875",
        "payments-0  billing-1  billing-2  30000     58.9 s             4,117,381",
    ]


def test_json_is_one_line_with_every_figure(command: Any) -> None:
    result = command("explain", "-o", "json", input=json.dumps(_CASE | {"id": 7}))

    assert json.loads(result.stdout) == {
        "id": 7,
        "strategy": "lag-sticky",
        "summary": "1 move: the group is drained in 90 s instead of 2.5 min. No assignment takes less than 90 s: "
        "partition t-0 alone takes 90 s on the fastest member that may read it: add partitions.",
        "reason": None,
        "drain_s_before": 150.0,
        "drain_s_after": 90.0,
        "drain_s_bound": 90.0,
        "drain_ratio": 1.0,
        "members": [
            {
                "member": name,
                "capacity": 10.0,
                "partitions_before": partitions,
                "partitions_after": 1,
                "lag_before": lag_before,
                "lag_after": lag_after,
                "drain_s_before": lag_before / 10,
                "drain_s_after": lag_after / 10,
            }
            for name, partitions, lag_before, lag_after in (("a", 2, 1500, 900), ("b", 0, 0, 600))
        ],
        "moves": [
            {
                "topic": "t",
                "partition": 1,
                "from": "a",
                "to": "b",
                "lag": 600,
                "drain_s_without": 150.0,
                "saves_record_s": 54000.0,
            }
        ],
    }


def test_why_nothing_moves_is_told(command: Any) -> None:
    lines = told(command, _CASE | {"options": {"max_moves": 0}})

    assert lines[0][:3] == ["lag-sticky:", "Nothing", "moves:"]
    assert lines[1] == ["Why:", "no", "move:", "max_moves", "is", "0"]
    assert not any("MOVE" in line for line in lines)


def test_group_that_is_never_drained_is_told_with_the_way_out(command: Any) -> None:
    lines = told(command, _CASE | {"rates": {"t": [18.0, 3.0]}})

    text = "\n".join(map(" ".join, lines))
    assert "the group is never drained, nor would it be by any other assignment" in text
    assert (
        "Why: the group runs at 105 % of its capacity (receives 1 records/s more than it drains): add 1 member; "
        "partition t-0 alone needs 1.8 members (receives 8 records/s more than the fastest drains)" in text
    )
    assert ["(group)", "2", "2", "1500", "1500", "never", "never", "never"] in lines


def test_move_without_which_the_group_would_never_be_drained_says_so(command: Any) -> None:
    lines = told(command, _CASE | {"rates": {"t": [6.0, 6.0]}})

    assert lines[-1][4:6] == ["never", "without"]


def test_move_that_makes_it_worse_is_told_of_other_strategies(command: Any) -> None:
    """By count roundrobin gives b the second partition, which b is too slow for."""
    case = json.loads(json.dumps(_CASE)) | {"rates": {"t": [1.0, 2.0]}}
    case["members"]["b"]["capacity"] = 2

    lines = told(command, case, "-s", "roundrobin")

    assert lines[0][0] == "roundrobin:"
    assert lines[-1][4:7] == ["makes", "it", "never"]


def test_move_that_makes_it_later_says_by_how_much(command: Any) -> None:
    """By count roundrobin gives b the second partition, which takes b 600 s."""
    case = json.loads(json.dumps(_CASE))
    case["members"]["b"]["capacity"] = 1

    lines = told(command, case, "-s", "roundrobin")

    assert lines[-1][4:6] == ["-7.5", "min"]


def test_times_without_capacities_are_left_out(command: Any) -> None:
    case = json.loads(json.dumps(_CASE))
    for member in case["members"].values():
        del member["capacity"]

    lines = told(command, case)

    assert "not known: no member has a capacity" in " ".join(lines[0])
    assert ["(group)", "2", "2", "1500", "1500", "-", "-", "-"] in lines


def test_names_cannot_steer_the_terminal(command: Any) -> None:
    case = {"topics": {"t": 1}, "members": {"\u001b[2J": {"topics": ["t"], "capacity": 1}}}

    result = command("explain", input=json.dumps(case))

    assert "\u001b" not in result.stdout
    assert "\\x1b[2J" in result.stdout


def test_topic_in_the_summary_cannot_steer_the_terminal(command: Any) -> None:
    case = {
        "topics": {"\u001b[2J": 1},
        "members": {name: {"topics": ["\u001b[2J"], "capacity": 1} for name in ("a", "b")},
        "lags": {"\u001b[2J": [60]},
    }

    result = command("explain", input=json.dumps(case))

    assert "\u001b" not in result.stdout
    assert "partition \\x1b[2J-0 alone takes 60 s" in result.stdout


def test_lone_surrogate_in_a_name_is_written_as_an_escape(command: Any) -> None:
    case = {"topics": {"t\ud800": 1}, "members": {"m\ud801": {"topics": ["t\ud800"], "capacity": 1}}}

    result = command("explain", input=json.dumps(case))

    assert result.exit_code == 0
    assert "\\ud801" in result.stdout
    assert "t\\ud800-0" in result.stdout


def test_topics_without_partitions_that_members_share_unequally_are_no_work(command: Any) -> None:
    case = {
        "topics": {"t": 0, "u": 0},
        "members": {"a": {"topics": ["t"], "capacity": 1}, "b": {"topics": ["u"], "capacity": 1}},
    }

    assert " ".join(told(command, case)[0]) == "lag-sticky: Nothing moves: the group is drained in 0 s."


def test_bad_case_is_told_on_stderr_and_the_next_is_explained(command: Any) -> None:
    result = command("explain", input="{}\n\n" + json.dumps(_CASE))

    assert result.exit_code == 1
    assert "topics: is missing" in result.stderr
    assert "lag-sticky: 1 move" in result.stdout


@pytest.mark.parametrize("arguments", [("-s", "best"), ("-o", "csv")], ids=["strategy", "format"])
def test_wrong_usage_is_exit_status_2(command: Any, arguments: tuple[str, ...]) -> None:
    assert command("explain", *arguments, input="").exit_code == 2
