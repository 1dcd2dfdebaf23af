"""Strict parser of a JSON case: every error names its key.

The form of a case is `case.schema.json` next to this module; what a schema cannot say (lists as long as the
topic has partitions, one member per id) is checked here too.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from assignor.errors import InvalidCaseError, InvalidGroupError
from assignor.model.arrays import Bools, Floats, Int64s
from assignor.model.claims import NO_GENERATION
from assignor.model.group import GREATEST_LAG, GREATEST_RATE, LEAST_CAPACITY, Group
from assignor.model.members import Member, build_group
from assignor.model.topics import Topics

MOST_PARTITIONS = 10_000_000
"""More than any Kafka cluster holds; above it a case is a mistake that would only use up memory."""

CASE_KEYS = frozenset({"topics", "members", "lags", "rates", "racks", "fixed", "options"})
MEMBER_KEYS = ("topics", "owned", "generation", "instance", "client", "rack", "capacity", "closed")
_GREATEST_INT32 = 2**31 - 1
_GREATEST_INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """A valid case."""

    group: Group
    unknown_lag: Bools
    """P entries: the lag of the partition was null or not given; the group has 0 there."""
    options: Mapping[str, object]
    """As given; the strategy checks them."""


def read_document(line: str) -> dict[str, object]:
    """Parse the JSON object of one line.

    Raises:
        InvalidCaseError: Not JSON, not an object, a key twice in one object, or NaN or infinity as a number.
    """
    try:
        document = json.loads(
            line,
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError:
        raise InvalidCaseError("", "not a case: nested too deeply") from None
    except ValueError as error:
        raise InvalidCaseError("", f"not JSON: {error}") from None
    return _object(document, "")


def read_case(document: Mapping[str, object]) -> Case:
    """The case in `document`; keys other than those of a case are not looked at.

    Raises:
        InvalidCaseError: A key is missing, or a value is not what the key takes.
    """
    for key in ("topics", "members"):
        if key not in document:
            raise InvalidCaseError(key, "is missing")
    topics = _topics(document["topics"])
    members = _object(document["members"], "members")
    lag, unknown_lag = _lags(topics, document.get("lags"))
    try:
        group = build_group(
            topics=topics,
            members=[_member(member_id, value) for member_id, value in members.items()],
            lag=lag,
            rate=_rates(topics, document.get("rates")),
            replica_racks=_racks(topics, document.get("racks")),
            fixed=_fixed(topics, document.get("fixed")),
        )
    except InvalidGroupError as error:
        raise InvalidCaseError("", str(error)) from error
    return Case(group=group, unknown_lag=unknown_lag, options=_optional_object(document, "options"))


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidCaseError(twice, "appears twice in one object")
    return found


def _refuse_constant(constant: str) -> object:
    raise InvalidCaseError("", f"not JSON: {constant} is not a number")


def _finite(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        # Python reads it as infinity, which no answer can repeat.
        raise InvalidCaseError("", f"{literal} is too large for a number")
    return value


def _topics(value: object) -> Topics:
    counts = {
        name: _integer(count, f"topics.{name}", low=0, high=MOST_PARTITIONS)
        for name, count in _object(value, "topics").items()
    }
    if sum(counts.values()) > MOST_PARTITIONS:
        raise InvalidCaseError("topics", f"more than {MOST_PARTITIONS} partitions")
    return Topics.of(counts)


def _member(member_id: str, value: object) -> Member:
    key = f"members.{member_id}"
    entry = _object(value, key)
    for name in entry:
        if name not in MEMBER_KEYS:
            raise InvalidCaseError(
                f"{key}.{name}", f"is not a key of a member; the keys are {', '.join(MEMBER_KEYS)}"
            )
    if "topics" not in entry:
        raise InvalidCaseError(f"{key}.topics", "is missing")
    subscribed = _list(entry["topics"], f"{key}.topics")
    _optional_text(entry, "client", key)
    generation = entry.get("generation")
    return Member(
        member_id=member_id,
        topics=[_text(topic, f"{key}.topics[{i}]") for i, topic in enumerate(subscribed)],
        instance_id=_optional_text(entry, "instance", key),
        rack=_optional_text(entry, "rack", key),
        owned={
            topic: _numbers(numbers, f"{key}.owned.{topic}")
            for topic, numbers in _optional_object(entry, "owned", f"{key}.owned").items()
        },
        generation=NO_GENERATION
        if generation is None
        else _integer(generation, f"{key}.generation", low=NO_GENERATION, high=_GREATEST_INT32),
        capacity=_capacity(entry.get("capacity"), f"{key}.capacity"),
        closed=_optional_flag(entry, "closed", key),
    )


def _numbers(value: object, key: str) -> list[int]:
    """Claimed partition numbers: any int32, for members may claim what they like."""
    low = -_GREATEST_INT32 - 1
    return [
        _integer(number, f"{key}[{i}]", low=low, high=_GREATEST_INT32)
        for i, number in enumerate(_list(value, key))
    ]


def _lags(topics: Topics, value: object) -> tuple[Int64s, Bools]:
    """Lag by partition index with 0 for unknown, and where it is unknown."""
    lag = np.zeros(topics.n_partitions, np.int64)
    unknown = np.ones(topics.n_partitions, np.bool_)
    for name, first, values in _by_topic(topics, value, "lags"):
        for i, records in enumerate(values):
            if records is not None:
                lag[first + i] = _integer(records, f"lags.{name}[{i}]", low=0, high=_GREATEST_INT64)
                unknown[first + i] = False
    if float(lag.sum(dtype=np.float64)) > GREATEST_LAG:
        largest = int(lag.argmax())
        key = f"lags.{topics.names[topics.topic_of[largest]]}[{topics.number_of[largest]}]"
        raise InvalidCaseError(
            key, f"is the largest lag, and the lags sum to more than {GREATEST_LAG} records"
        )
    return lag, unknown


def _rates(topics: Topics, value: object) -> Floats:
    rate = np.zeros(topics.n_partitions, np.float64)
    for name, first, values in _by_topic(topics, value, "rates"):
        for i, records_per_s in enumerate(values):
            rate[first + i] = _speed(records_per_s, f"rates.{name}[{i}]", low=0.0)
    return rate


def _racks(topics: Topics, value: object) -> list[list[str]]:
    """Replica racks by partition index; a topic left out has none."""
    by_partition: list[list[str]] = [[] for _ in range(topics.n_partitions)]
    for name, first, values in _by_topic(topics, value, "racks"):
        for i, racks in enumerate(values):
            key = f"racks.{name}[{i}]"
            by_partition[first + i] = [_text(rack, f"{key}[{j}]") for j, rack in enumerate(_list(racks, key))]
    return by_partition


def _fixed(topics: Topics, value: object) -> Bools | None:
    """Where a partition is fixed; None when no topic is named."""
    fixed = np.zeros(topics.n_partitions, np.bool_)
    index = topics.index()
    named = {} if value is None else _object(value, "fixed")
    for name, numbers in named.items():
        if name not in index:
            raise InvalidCaseError(f"fixed.{name}", "is not in topics")
        first, most = int(topics.offsets[index[name]]), int(topics.counts[index[name]]) - 1
        for i, number in enumerate(_list(numbers, f"fixed.{name}")):
            fixed[first + _integer(number, f"fixed.{name}[{i}]", low=0, high=most)] = True
    return fixed if named else None


def _by_topic(topics: Topics, value: object, key: str) -> Iterable[tuple[str, int, list[object]]]:
    """(topic, its first partition index, one value for each of its partitions) of a key that may be absent."""
    index = topics.index()
    for name, given in ({} if value is None else _object(value, key)).items():
        if name not in index:
            raise InvalidCaseError(f"{key}.{name}", "is not in topics")
        values = _list(given, f"{key}.{name}")
        count = int(topics.counts[index[name]])
        if len(values) != count:
            raise InvalidCaseError(f"{key}.{name}", f"{len(values)} values for {count} partitions")
        yield name, int(topics.offsets[index[name]]), values


def _capacity(value: object, key: str) -> float | None:
    if value is None:
        return None
    return _speed(value, key, low=LEAST_CAPACITY, hint="; leave it out when it is unknown")


def _object(value: object, key: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidCaseError(key, f"must be an object, got {_kind(value)}")
    return value


def _optional_object(entry: Mapping[str, object], name: str, key: str | None = None) -> dict[str, object]:
    value = entry.get(name)
    return {} if value is None else _object(value, key or name)


def _list(value: object, key: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidCaseError(key, f"must be a list, got {_kind(value)}")
    return value


def _text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise InvalidCaseError(key, f"must be a string, got {_kind(value)}")
    return value


def _optional_text(entry: Mapping[str, object], name: str, key: str) -> str | None:
    value = entry.get(name)
    return None if value is None else _text(value, f"{key}.{name}")


def _optional_flag(entry: Mapping[str, object], name: str, key: str) -> bool:
    value = entry.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidCaseError(f"{key}.{name}", f"must be true or false, got {_kind(value)}")
    return bool(value)


def _integer(value: object, key: str, *, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidCaseError(key, f"must be a whole number, got {_kind(value)}")
    if not low <= value <= high:
        raise InvalidCaseError(key, f"must be from {low} to {high}")
    return value


def _speed(value: object, key: str, *, low: float, hint: str = "") -> float:
    """Records per second."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidCaseError(key, f"must be a number, got {_kind(value)}")
    if not low <= value <= GREATEST_RATE:
        raise InvalidCaseError(key, f"must be from {low:g} to {GREATEST_RATE} records per second{hint}")
    return float(value)


def _kind(value: object) -> str:
    """What JSON calls the value."""
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "true or false",
        float: "a decimal number",
    }
    return "null" if value is None else kinds.get(type(value), "a number")
