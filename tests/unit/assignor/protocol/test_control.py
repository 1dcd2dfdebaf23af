import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from assignor.errors import ControlRecordTooLargeError, DecodeError, EncodeError
from assignor.protocol import control
from assignor.protocol.control import ControlMember, ControlMove, ControlReasons, ControlRecord

VALUE = (
    b'{"schema":1,"cluster":"local","group":"billing","epoch":17,"strategy":"lag-sticky","dry_run":false,'
    b'"created_at":"2026-01-31T12:00:00.000Z","valid_until":"2026-01-31T12:05:00.250Z",'
    b'"base":{"generation":42,"protocol":"range"},"migration":"disabled",'
    b'"members":{"a-1":{"instance":null,"client":"a","host":"/10.0.0.7",'
    b'"base":{"invoices":"0-5,9"},"target":{"invoices":"0-5"}},'
    b'"b-2":{"instance":"i","client":"b","host":"/10.0.0.8","base":{},"target":{"invoices":"9"}}},'
    b'"moves":[{"topic":"invoices","partition":9,"from":"a-1","to":"b-2"}],'
    b'"unassigned":{"no member subscribes to the topic":{"orphans":"0-1"}},'
    b'"why":{"drain_s_before":412.0,"drain_s_after":121.5,"drain_s_bound":null,"lag":184203}}'
)
RECORD = ControlRecord(
    cluster="local",
    group="billing",
    epoch=17,
    strategy="lag-sticky",
    dry_run=False,
    created_at_ms=1_769_860_800_000,
    valid_until_ms=1_769_861_100_250,
    base_generation=42,
    base_protocol="range",
    migration="disabled",
    members={
        "a-1": ControlMember(
            instance=None,
            client="a",
            host="/10.0.0.7",
            base={"invoices": (0, 1, 2, 3, 4, 5, 9)},
            target={"invoices": (0, 1, 2, 3, 4, 5)},
        ),
        "b-2": ControlMember(instance="i", client="b", host="/10.0.0.8", base={}, target={"invoices": (9,)}),
    },
    moves=(ControlMove(topic="invoices", partition=9, from_member="a-1", to_member="b-2"),),
    unassigned={"no member subscribes to the topic": {"orphans": (0, 1)}},
    why=ControlReasons(drain_s_before=412.0, drain_s_after=121.5, drain_s_bound=None, lag=184_203),
)


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(VALUE)
    change(document)
    return json.dumps(document).encode()


def test_record_and_value_stand_for_each_other() -> None:
    assert control.encode(RECORD) == VALUE
    assert control.decode(VALUE) == RECORD


def test_key_is_written_in_one_way_only() -> None:
    key = '{"cluster":"local","group":"büro \\"1\\""}'.encode()

    assert control.encode_key("local", 'büro "1"') == key
    assert control.decode_key(key) == ("local", 'büro "1"')


def test_headers_hold_schema_and_epoch_as_text() -> None:
    assert control.headers(17) == [("schema", b"1"), ("epoch", b"17")]


def test_order_of_mappings_and_moves_does_not_change_the_bytes() -> None:
    second = ControlMove(topic="a", partition=3, from_member=None, to_member="b-2")
    forwards = replace(
        RECORD, moves=(*RECORD.moves, second), unassigned={"x": {"u": (1,), "t": (0,)}, "a": {}}
    )
    backwards = replace(
        forwards,
        members=dict(reversed(RECORD.members.items())),
        moves=forwards.moves[::-1],
        unassigned={"a": {}, "x": {"t": (0,), "u": (1,)}},
    )

    assert control.encode(forwards) == control.encode(backwards)


def test_equal_numbers_give_equal_bytes() -> None:
    whole = replace(RECORD.why, drain_s_before=412, drain_s_bound=-0.0)
    real = replace(RECORD.why, drain_s_before=412.0, drain_s_bound=0.0)

    assert control.encode(replace(RECORD, why=whole)) == control.encode(replace(RECORD, why=real))


def test_unknown_fields_of_a_later_schema_are_ignored() -> None:
    def extend(document: dict[str, Any]) -> None:
        document.update(schema=2, phase="x")
        document["members"]["a-1"]["rack"] = {"deep": [1]}
        document["why"]["cost"] = None

    assert control.decode(changed(extend)) == RECORD


def test_plan_for_the_broker_says_so_and_one_for_members_is_as_ever() -> None:
    for_broker = replace(RECORD, group_protocol="consumer")

    assert control.decode(control.encode(for_broker)) == for_broker
    assert json.loads(control.encode(for_broker))["group_protocol"] == "consumer"
    assert b"group_protocol" not in control.encode(RECORD)


def test_absent_unassigned_is_empty() -> None:
    assert control.decode(changed(lambda document: document.pop("unassigned"))).unassigned == {}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda document: document.pop("migration"), id="absent"),
        pytest.param(lambda document: document.update(migration="downgrade only"), id="of a later version"),
    ],
)
def test_migration_that_is_not_known_is_unknown(change: Callable[[dict[str, Any]], object]) -> None:
    assert control.decode(changed(change)).migration == "unknown"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda d: d.pop("epoch"), "'epoch': missing", id="missing"),
        pytest.param(lambda d: d.update(epoch=0), "'epoch': not a whole number of at least 1", id="epoch 0"),
        pytest.param(lambda d: d.update(epoch=True), "'epoch': not a whole number", id="true is no number"),
        pytest.param(lambda d: d.update(epoch=17.0), "'epoch': not a whole number", id="fraction"),
        pytest.param(lambda d: d.update(epoch=2**63), "'epoch': not a whole number", id="epoch above int64"),
        pytest.param(lambda d: d.update(schema=0), "'schema': not a whole number", id="schema 0"),
        pytest.param(lambda d: d.update(group=None), "'group': not a string", id="null text"),
        pytest.param(lambda d: d.update(dry_run="no"), "'dry_run': not true or false", id="text for boolean"),
        pytest.param(lambda d: d.update(members=[]), "members: not an object", id="array for object"),
        pytest.param(lambda d: d.update(moves={}), "'moves': not an array", id="object for array"),
        pytest.param(lambda d: d.update(moves=[1]), r"moves\[0\]: not an object", id="number for move"),
        pytest.param(lambda d: d["moves"][0].update(partition=-1), r"'moves\[0\].partition'", id="partition -1"),
        pytest.param(
            lambda d: d["members"]["a-1"].update(target={"t": "2-1"}), "partition ranges", id="ranges"
        ),
        pytest.param(lambda d: d["why"].update(lag=-1), "'why.lag': not a whole number", id="negative lag"),
        pytest.param(lambda d: d["why"].update(drain_s_after="1"), "'why.drain_s_after'", id="text for number"),
        pytest.param(lambda d: d.update(created_at="2026-02-30T00:00:00Z"), "time '2026-02-30", id="no such day"),
        pytest.param(lambda d: d.update(created_at="2026-02-03 00:00"), "time '2026-02-03 00", id="other form"),
        pytest.param(lambda d: d.update(group="\ud800"), "'group': holds half a surrogate", id="surrogate"),
        pytest.param(
            lambda d: d["members"]["a-1"].update(base={"\udfff": ""}), "half a surrogate", id="surrogate in a name"
        ),
    ],
)  # fmt: skip
def test_wrong_field_is_named(change: Callable[[dict[str, Any]], object], reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        control.decode(changed(change))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(b"\xff", "not UTF-8", id="utf-8"),
        pytest.param(VALUE[:-1], "not JSON", id="half written"),
        pytest.param(b"[]", "document: not an object", id="array"),
        pytest.param(VALUE.replace(b"412.0", b"NaN"), "not JSON: NaN", id="nan"),
        pytest.param(VALUE.replace(b"412.0", b"1e999"), "not a finite number", id="infinite"),
        pytest.param(VALUE.replace(b":17,", b":" + b"9" * 5000 + b","), "not JSON", id="5000 digits"),
        pytest.param(b'{"a":' * 100_000, "nested too deep", id="deep"),
        pytest.param(
            VALUE.replace(b'"0-5"', b'"0-2147483647"'),
            "more than 1999993 partitions",
            id="too many partitions",
        ),
    ],
)
def test_value_that_is_no_record_is_refused(value: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        control.decode(value)


def test_partitions_of_all_members_count_against_one_limit() -> None:
    def hoard(document: dict[str, Any]) -> None:
        document["members"]["b-2"]["target"] = {str(topic): "0-999998" for topic in range(3)}

    with pytest.raises(DecodeError, match="more than"):
        control.decode(changed(hoard))


def test_record_above_the_limit_is_refused_whole() -> None:
    with pytest.raises(ControlRecordTooLargeError) as caught:
        control.encode(RECORD, limit_bytes=len(VALUE) - 1)

    assert caught.value.size_bytes == len(VALUE)
    assert "group 'billing'" in str(caught.value)
    assert "max.message.bytes" in str(caught.value)


def test_record_at_the_limit_is_encoded() -> None:
    assert control.encode(RECORD, limit_bytes=len(VALUE)) == VALUE


def test_2100_members_and_partitions_that_all_move_stay_under_the_limit() -> None:
    names = [f"billing-{number}-0f8fad5b-d9cb-469f-a165-{number:012d}" for number in range(2100)]
    members = {
        name: ControlMember(
            instance=None,
            client=f"billing-{number}",
            host="/10.100.200.30",
            base={"invoices": (number,)},
            target={"invoices": ((number + 1) % 2100,)},
        )
        for number, name in enumerate(names)
    }
    moves = tuple(
        ControlMove(topic="invoices", partition=number, from_member=name, to_member=names[number - 1])
        for number, name in enumerate(names)
    )

    assert len(control.encode(replace(RECORD, members=members, moves=moves))) < 1_000_000


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(replace(RECORD, why=replace(RECORD.why, drain_s_after=float("nan"))), id="nan"),
        pytest.param(replace(RECORD, why=replace(RECORD.why, drain_s_after=float("inf"))), id="infinite"),
        pytest.param(replace(RECORD, group="\ud800"), id="surrogate"),
        pytest.param(replace(RECORD, valid_until_ms=10**18), id="after the year 9999"),
    ],
)
def test_record_that_no_reader_could_take_is_not_written(record: ControlRecord) -> None:
    with pytest.raises(EncodeError):
        control.encode(record)


@pytest.mark.parametrize(
    "error",
    [DecodeError("reason", position=3), ControlRecordTooLargeError("g", 2, 1)],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel_from_executor_to_driver(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - made two calls ago

    assert (str(copy), vars(copy)) == (str(error), vars(error))
