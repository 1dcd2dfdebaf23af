import json
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import assignor
from assignor.cases.run import run_lines
from assignor.errors import UnknownStrategyError
from assignor.strategies.registry import STRATEGIES

HOME = Path(assignor.__file__).parent / "cases"
SCHEMA = json.loads((HOME / "case.schema.json").read_text())
ANSWER_SCHEMA = SCHEMA | {"$ref": "#/$defs/answer", "type": "object", "required": [], "properties": {}}


def answers(*lines: str, strategy: str = "lag-aware") -> tuple[int, list[dict[str, Any]]]:
    written: list[str] = []
    status = run_lines(lines, written.append, strategy_name=strategy, clock=lambda: 0.0)
    results = [json.loads(text) for text in written]
    for result in results:
        jsonschema.validate(result, ANSWER_SCHEMA)
    return status, results


def answer(case: dict[str, Any], strategy: str = "lag-aware") -> dict[str, Any]:
    _, [result] = answers(json.dumps(case), strategy=strategy)
    return result


def case(**changes: Any) -> dict[str, Any]:
    """Two members, one of which owns both partitions of t."""
    sound = {
        "topics": {"t": 2},
        "members": {"a": {"topics": ["t"], "owned": {"t": [0, 1]}, "generation": 5}, "b": {"topics": ["t"]}},
        "lags": {"t": [30, 10]},
    }
    return sound | changes


@pytest.mark.parametrize("name", STRATEGIES)
def test_worked_case_has_its_worked_answer(name: str) -> None:
    line = (HOME / "examples" / f"{name}.json").read_text()
    expected = json.loads((HOME / "examples" / f"{name}.result.json").read_text())

    jsonschema.validate(json.loads(line), SCHEMA)
    status, results = answers(line, strategy=name)

    assert results == [expected]
    assert status == 0


def test_answer_has_assignment_moves_and_figures() -> None:
    result = answer(case())

    assert result == {
        "assignment": {"a": {"t": [0]}, "b": {"t": [1]}},
        "unassigned": {},
        "moves": [{"topic": "t", "partition": 1, "from": "a", "to": "b", "lag": 10}],
        "figures": {
            "seconds": 0.0,
            "moves": 1,
            "counts": [1, 1],
            "drain_s_before": None,
            "drain_s_after": None,
            "drain_s_bound": None,
            "lag_imbalance_before": 1.0,
            "lag_imbalance_after": 0.5,
        },
        "reason": None,
    }


def test_partition_that_nobody_held_moves_from_null() -> None:
    result = answer({"topics": {"t": 1}, "members": {"a": {"topics": ["t"]}}, "lags": {"t": [7]}})

    assert result["moves"] == [{"topic": "t", "partition": 0, "from": None, "to": "a", "lag": 7}]


def test_partition_that_nobody_may_hold_moves_to_null() -> None:
    members = {"a": {"topics": [], "owned": {"t": [0]}}}

    result = answer({"topics": {"t": 1}, "members": members, "lags": {"t": [7]}})

    assert result["moves"] == [{"topic": "t", "partition": 0, "from": "a", "to": None, "lag": 7}]
    assert result["unassigned"] == {"t": [0]}
    assert result["reason"] == "1 partition(s) unassigned: no member subscribes to the topic"


def test_fixed_partition_stays_and_a_closed_member_is_given_nothing() -> None:
    members = {
        "a": {"topics": ["t"], "owned": {"t": [0, 1]}},
        "b": {"topics": ["t"]},
        "c": {"topics": ["t"], "closed": True},
    }

    result = answer(case(members=members, fixed={"t": [1]}))

    assert result["assignment"] == {"a": {"t": [1]}, "b": {"t": [0]}, "c": {}}


def test_what_only_closed_members_read_is_unassigned_with_the_reason() -> None:
    members = {"a": {"topics": ["t"], "owned": {"t": [0]}, "closed": True}}

    result = answer(case(members=members))

    assert (result["assignment"], result["unassigned"]) == ({"a": {"t": [0]}}, {"t": [1]})
    assert result["reason"] == "1 partition(s) unassigned: the members that could have it do not follow plans"


def test_times_come_with_capacities() -> None:
    members = {m: {"topics": ["t"], "owned": o, "capacity": 10} for m, o in (("a", {"t": [0, 1]}), ("b", {}))}

    figures = answer(case(members=members, rates={"t": [5.0, 0.0]}))["figures"]

    assert (figures["drain_s_before"], figures["drain_s_after"], figures["drain_s_bound"]) == (8.0, 6.0, 6.0)


@pytest.mark.parametrize(
    ("rates", "reason"),
    [
        (
            [12.0, 0.0],
            "partition t-0 alone needs 1.2 members (receives 2 records/s more than the fastest drains): add partitions",
        ),
        ([6.0, 6.0], "under its present owners the group is never drained"),
    ],
    ids=["hopeless", "helped"],
)
def test_never_is_null_with_the_reason(rates: list[float], reason: str) -> None:
    members = {m: {"topics": ["t"], "owned": o, "capacity": 10} for m, o in (("a", {"t": [0, 1]}), ("b", {}))}

    result = answer(case(members=members, rates={"t": rates}))

    assert result["figures"]["drain_s_before"] is None
    assert result["reason"] == reason


def test_owners_are_not_blamed_for_a_partition_that_has_none() -> None:
    members = {m: {"topics": ["t"], "owned": o, "capacity": 10} for m, o in (("a", {"t": [0]}), ("b", {}))}

    result = answer(case(members=members))

    assert result["figures"]["drain_s_before"] is None
    assert result["reason"] == "1 partition(s) with records to read have no owner now"


def test_unknown_lag_is_null_in_the_move_and_told_in_the_reason() -> None:
    result = answer(case(lags={"t": [30, None]}))

    assert result["moves"][0]["lag"] is None
    assert result["reason"] == "1 partition(s) of unknown lag counted as 0"


def test_unknown_lag_does_not_matter_to_a_strategy_that_does_not_read_it() -> None:
    assert answer(case(lags={}), "constrained-cooperative-sticky")["reason"] is None


def test_claims_that_cannot_be_are_told_in_the_reason() -> None:
    members = {
        "a": {"topics": ["t"], "owned": {"t": [-1, 2, 0], "gone": [0]}},
        "b": {"topics": ["t"], "owned": {"t": [0]}},
    }

    reason = answer(case(members=members))["reason"]

    assert "3 claim(s) ignored: 1 on unknown topics, 2 on partitions that do not exist" in reason
    assert "1 partition(s) claimed by several members of one generation" in reason


def test_other_keys_are_echoed_in_answers_and_errors() -> None:
    status, results = answers(
        json.dumps({"id": 7, "reason": "mine"} | case()), json.dumps({"id": {"x": 8}, "topics": {}})
    )

    assert results[0]["id"] == 7
    assert results[0]["reason"] is None
    assert results[1] == {"id": {"x": 8}, "error": "members: is missing"}
    assert status == 1


def test_bad_line_does_not_stop_the_rest() -> None:
    good = json.dumps(case())

    status, results = answers(good, "{", "", "\n", good)

    assert ["error" in result for result in results] == [False, True, False]
    assert status == 1


def test_every_answer_is_written_on_its_own_line_as_soon_as_it_is_known() -> None:
    written: list[str] = []

    def lines() -> Any:
        for expected in range(3):
            assert len(written) == expected
            yield json.dumps(case()) + "\n"

    run_lines(lines(), written.append, strategy_name="lag-aware", clock=lambda: 0.0)

    assert all(text.endswith("\n") and text.count("\n") == 1 for text in written)


def test_seconds_are_those_spent_in_the_strategy() -> None:
    written: list[str] = []
    ticks = count(10.0, 0.5)

    run_lines([json.dumps(case())], written.append, strategy_name="lag-aware", clock=lambda: next(ticks))

    assert json.loads(written[0])["figures"]["seconds"] == 0.5


def test_names_outside_ascii_come_back_as_they_were() -> None:
    _, [result] = answers('{"topics":{"\\ud800é":1},"members":{"ü":{"topics":["\\ud800é"]}}}')

    assert result["assignment"] == {"ü": {"\ud800é": [0]}}


def test_unknown_strategy_is_refused_before_any_line_is_read() -> None:
    with pytest.raises(UnknownStrategyError):
        run_lines(iter([]), print, strategy_name="nope", clock=lambda: 0.0)


BAD_CASES = {
    "topics: is missing": '{"members":{}}',
    "members: is missing": '{"topics":{}}',
    "topics: must be an object, got a list": '{"topics":[],"members":{}}',
    "topics.t: must be a whole number, got true or false": '{"topics":{"t":true},"members":{}}',
    "topics.t: must be a whole number, got a decimal number": '{"topics":{"t":1.0},"members":{}}',
    "topics.t: must be from 0 to": '{"topics":{"t":-1},"members":{}}',
    "topics: more than": '{"topics":{"t":9000000,"u":9000000},"members":{}}',
    "members.a: must be an object, got null": '{"topics":{},"members":{"a":null}}',
    "members.a.topics: is missing": '{"topics":{},"members":{"a":{}}}',
    "members.a.topics[1]: must be a string, got a number": '{"topics":{},"members":{"a":{"topics":["t",1]}}}',
    "members.a.capcity: is not a key of a member": '{"topics":{},"members":{"a":{"topics":[],"capcity":1}}}',
    "members.a.owned.t[1]: must be from": '{"topics":{},"members":{"a":{"topics":[],"owned":{"t":[0,2147483648]}}}}',
    "members.a.owned.t: must be a list": '{"topics":{},"members":{"a":{"topics":[],"owned":{"t":"0-3"}}}}',
    "members.a.owned: must be an object": '{"topics":{},"members":{"a":{"topics":[],"owned":[]}}}',
    "members.a.generation: must be from -1": '{"topics":{},"members":{"a":{"topics":[],"generation":-2}}}',
    "members.a.instance: must be a string": '{"topics":{},"members":{"a":{"topics":[],"instance":1}}}',
    "members.a.client: must be a string": '{"topics":{},"members":{"a":{"topics":[],"client":1}}}',
    "members.a.rack: must be a string": '{"topics":{},"members":{"a":{"topics":[],"rack":1}}}',
    "members.a.capacity: must be from 1e-06": '{"topics":{},"members":{"a":{"topics":[],"capacity":0}}}',
    "4611686018427387904 records per second": '{"topics":{},"members":{"a":{"topics":[],"capacity":1e300}}}',
    "members.a.capacity: must be a number": '{"topics":{},"members":{"a":{"topics":[],"capacity":"1"}}}',
    "leave it out when it is unknown": '{"topics":{},"members":{"a":{"topics":[],"capacity":1e-9}}}',
    "lags.u: is not in topics": '{"topics":{},"members":{},"lags":{"u":[]}}',
    "lags.t: 1 values for 2 partitions": '{"topics":{"t":2},"members":{},"lags":{"t":[1]}}',
    "lags.t[1]: must be from 0": '{"topics":{"t":2},"members":{},"lags":{"t":[1,-1]}}',
    "lags.t[0]: must be a whole number, got a decimal number": '{"topics":{"t":1},"members":{},"lags":{"t":[0.5]}}',
    "rates.t[0]: must be a number, got null": '{"topics":{"t":1},"members":{},"rates":{"t":[null]}}',
    "rates.t[0]: must be from 0 to 4611686018427387904 records per second": '{"topics":{"t":1},"members":{},"rates":{"t":[-1]}}',
    "racks.t[0]: must be a list, got a string": '{"topics":{"t":1},"members":{},"racks":{"t":["a"]}}',
    "racks.t[0][0]: must be a string": '{"topics":{"t":1},"members":{},"racks":{"t":[[1]]}}',
    "fixed.u: is not in topics": '{"topics":{"t":2},"members":{},"fixed":{"u":[0]}}',
    "fixed.t[1]: must be from 0 to 1": '{"topics":{"t":2},"members":{},"fixed":{"t":[0,2]}}',
    "members.a.closed: must be true or false": '{"topics":{},"members":{"a":{"topics":[],"closed":1}}}',
    "options: must be an object": '{"topics":{},"members":{},"options":[]}',
    "option 'x' is unknown": '{"topics":{},"members":{},"options":{"x":1}}',
    "a: appears twice in one object": '{"topics":{},"members":{"a":{"topics":[]},"a":{"topics":[]}}}',
    "lags.u[1]: is the largest lag, and the lags sum to more than": (
        '{"topics":{"t":1,"u":2},"members":{},"lags":{"t":[7],"u":[9,9223372036854775807]}}'
    ),
    "rates.u[1]: must be from 0 to": '{"topics":{"t":1,"u":2},"members":{},"rates":{"u":[1,1e308]}}',
    "must be an object, got a list": "[]",
    "not JSON: Expecting": "nonsense",
    "not JSON: NaN is not a number": '{"topics":{},"members":{},"id":NaN}',
    "1e999 is too large for a number": '{"topics":{},"members":{},"id":[{"at":1e999}]}',
    "-1e999 is too large for a number": '{"topics":{},"members":{"a":{"topics":[],"capacity":-1e999}}}',
    "not JSON: Exceeds the limit": '{"topics":{"t":' + "9" * 5000 + '},"members":{}}',
    "nested too deeply": "[" * 100_000,
}


@pytest.mark.parametrize(("message", "line"), BAD_CASES.items(), ids=list(BAD_CASES))
def test_bad_case_is_answered_with_the_key_and_what_is_wrong(message: str, line: str) -> None:
    status, [result] = answers(line)

    assert set(result) == {"error"}
    assert message in result["error"]
    assert status == 1


def test_case_after_one_with_too_large_a_number_is_answered() -> None:
    status, [bad, good] = answers(json.dumps(case())[:-1] + ',"id":1e999}', json.dumps(case(id=1e308)))

    assert (status, set(bad), good["id"]) == (1, {"error"}, 1e308)
