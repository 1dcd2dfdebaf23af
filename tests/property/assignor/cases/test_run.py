"""Whatever stands in a line, there is one answer of the promised form."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assignor
from assignor.cases.run import run_lines
from assignor.strategies.registry import STRATEGIES
from tests.support.assignors.groups import Description, descriptions

SCHEMA = json.loads((Path(assignor.__file__).parent / "cases" / "case.schema.json").read_text())
ANSWERS = jsonschema.Draft202012Validator({"$ref": "#/$defs/answer", "$defs": SCHEMA["$defs"]})
CASES = jsonschema.Draft202012Validator(SCHEMA)

# What strategies make of groups is tested without JSON around it; here the way in and out counts.
FEW = settings(max_examples=25)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.sampled_from(("t", "")),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("t", "u")), inner, max_size=2)
    ),
    max_leaves=5,
)
TAMPERED = ("topics", "members", "lags", "rates", "racks", "fixed", "options", "id")
TAMPERED_OF_A_MEMBER = (
    "topics",
    "owned",
    "generation",
    "instance",
    "client",
    "rack",
    "capacity",
    "closed",
    "else",
)


def answer(line: str, strategy: str) -> dict[str, Any]:
    written: list[str] = []
    run_lines([line], written.append, strategy_name=strategy, clock=lambda: 0.0)
    result: dict[str, Any] = json.loads(*written)
    ANSWERS.validate(result)
    return result


def document(description: Description) -> dict[str, Any]:
    return {
        "topics": description.partitions,
        "lags": description.lags,
        "rates": description.rates,
        "members": {
            m.member_id: {
                "topics": m.topics,
                "owned": m.owned,
                "generation": m.generation,
                "instance": m.instance_id,
                "capacity": m.capacity,
            }
            for m in description.members
        },
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEW
@given(description=descriptions(equal=True))
def test_answer_covers_every_partition_once(strategy: str, description: Description) -> None:
    case = document(description)

    result = answer(json.dumps(case), strategy)

    given_out = [
        (topic, number)
        for placed in (*result["assignment"].values(), result["unassigned"])
        for topic, numbers in placed.items()
        for number in numbers
    ]
    assert sorted(given_out) == sorted((t, i) for t, n in description.partitions.items() for i in range(n))
    CASES.validate(json.loads(json.dumps(case)))


@pytest.mark.parametrize("strategy", STRATEGIES)
@FEW
@given(description=descriptions(equal=True))
def test_order_of_keys_does_not_change_a_byte_of_the_answer(strategy: str, description: Description) -> None:
    case = document(description)
    turned = document(description.reversed())
    turned["lags"] = dict(reversed(turned["lags"].items()))

    assert json.dumps(answer(json.dumps(case), strategy)) == json.dumps(answer(json.dumps(turned), strategy))


@given(
    changes=st.dictionaries(st.sampled_from(TAMPERED), VALUES),
    of_a=st.none() | st.dictionaries(st.sampled_from(TAMPERED_OF_A_MEMBER), VALUES, max_size=2),
)
def test_tampered_case_is_answered_and_what_is_accepted_fits_the_schema(
    changes: dict[str, Any], of_a: dict[str, Any] | None
) -> None:
    case: dict[str, Any] = {"topics": {"t": 2}, "members": {"a": {"topics": ["t"]} | (of_a or {})}} | changes

    result = answer(json.dumps(case), "lag-aware")

    if "error" not in result:
        CASES.validate(json.loads(json.dumps(case)))


@given(st.text(max_size=20).filter(str.strip))
def test_any_text_is_answered(line: str) -> None:
    answer(line, "lag-aware")
