import json
from dataclasses import replace
from typing import Any

import pytest

from assignor.errors import DecodeError, EncodeError
from assignor.protocol import commands, control
from assignor.protocol.commands import MAX_PARTITIONS, Approval, Orders

KEY = b'{"cluster":"local","group":"billing"}'
ORDERS = Orders(
    cluster="local",
    group="billing",
    paused=True,
    pause_reason="näher ansehen",
    pinned={"t": (0, 1, 2, 3, 7), "all.of-it": ()},
    triggered_at_ms=1_769_860_799_999,
    at_ms=1_769_860_800_000,
    by="ann@ops-1",
)
VALUE = (
    '{"schema":1,"paused":true,"reason":"näher ansehen","pinned":{"all.of-it":"*","t":"0-3,7"},'
    '"triggered_at":"2026-01-31T11:59:59.999Z","by":"ann@ops-1","at":"2026-01-31T12:00:00.000Z"}'
).encode()


def test_orders_and_bytes_stand_for_each_other() -> None:
    assert (commands.encode_key(ORDERS), commands.encode(ORDERS)) == (KEY, VALUE)
    assert commands.decode(KEY, VALUE) == ORDERS


APPROVED = replace(
    ORDERS,
    approval=Approval(
        target_hash="3f2a", base_hash="91bc", reason="INC-1", by="ann@ops-1", at_ms=1_769_860_800_000
    ),
)
APPROVED_VALUE = (
    VALUE[:-1]
    + b',"approved":{"target":"3f2a","base":"91bc","reason":"INC-1","by":"ann@ops-1","at":"2026-01-31T12:00:00.000Z"}}'
)


def test_approval_stands_beside_the_other_orders() -> None:
    assert commands.encode(APPROVED) == APPROVED_VALUE
    assert commands.decode(KEY, APPROVED_VALUE) == APPROVED


def test_resume_stands_beside_the_other_orders_and_is_absent_in_older_records() -> None:
    resumed = replace(ORDERS, resumed_at_ms=1_769_860_800_000)
    value = VALUE[:-1] + b',"resumed_at":"2026-01-31T12:00:00.000Z"}'

    assert commands.encode(resumed) == value
    assert commands.decode(KEY, value) == resumed
    assert commands.decode(KEY, VALUE).resumed_at_ms is None


@pytest.mark.parametrize(
    "approved",
    [
        None,
        "3f2a",
        {"target": "3f2a"},
        {"target": 1, "base": "", "reason": "", "by": "", "at": "2026-01-31T12:00:00Z"},
    ],
    ids=str,
)
def test_wrong_approval_is_refused(approved: Any) -> None:
    wrong = json.dumps(json.loads(VALUE) | {"approved": approved}).encode()

    with pytest.raises(DecodeError, match="approved"):
        commands.decode(KEY, wrong)


def test_a_group_without_trigger_and_pins_has_a_form_too() -> None:
    value = b'{"schema":1,"paused":false,"reason":"","pinned":{},"triggered_at":null,"by":"","at":"1970-01-01T00:00:00.000Z"}'
    nothing = Orders(cluster="local", group="billing")

    assert commands.encode(nothing) == value
    assert commands.decode(KEY, value) == nothing


def test_key_is_that_of_the_control_record() -> None:
    assert commands.encode_key(ORDERS) == control.encode_key("local", "billing")


def test_null_value_orders_nothing() -> None:
    assert commands.decode(KEY, None) == Orders(cluster="local", group="billing")


def test_unknown_fields_of_a_later_schema_are_ignored() -> None:
    value = VALUE.replace(b'"schema":1', b'"schema":2,"shiny":[{}]')

    assert commands.decode(KEY, value) == ORDERS


def test_order_of_pins_does_not_change_the_bytes() -> None:
    turned = replace(ORDERS, pinned={"all.of-it": (), "t": (7, 3, 2, 1, 0, 0)})

    assert commands.encode(turned) == VALUE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", 0),
        ("paused", 1),
        ("reason", None),
        ("pinned", "0-3"),
        ("pinned", {"t": ""}),
        ("pinned", {"t": [0, 1]}),
        ("pinned", {"t": "3-0"}),
        ("pinned", {"t": "0-3, 7"}),
        ("pinned", {"t": "**"}),
        ("pinned", {"t": "0-2147483647"}),
        ("pinned", {"a": "0-59999", "b": "0-59999"}),
        ("triggered_at", "yesterday"),
        ("triggered_at", 0),
        ("resumed_at", "yesterday"),
        ("resumed_at", None),
        ("by", 7),
        ("at", None),
        ("at", "2026-01-31 12:00:00"),
    ],
    ids=str,
)
def test_wrong_field_is_refused(field: str, value: Any) -> None:
    wrong = json.dumps(json.loads(VALUE) | {field: value}).encode()

    with pytest.raises(DecodeError):
        commands.decode(KEY, wrong)


@pytest.mark.parametrize("field", ["schema", "paused", "reason", "pinned", "triggered_at", "by", "at"])
def test_missing_field_is_refused(field: str) -> None:
    fields = json.loads(VALUE)
    del fields[field]

    with pytest.raises(DecodeError, match="missing"):
        commands.decode(KEY, json.dumps(fields).encode())


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"billing",
        b'{"group":"billing"}',
        b'{"group":"billing","cluster":"local"}',
        b'{"cluster": "local", "group": "billing"}',
        b'{"cluster":"local","group":"billing","more":1}',
    ],
    ids=str,
)
@pytest.mark.parametrize("value", [VALUE, None], ids=["orders", "null"])
def test_key_in_another_form_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        commands.decode(key, value)


@pytest.mark.parametrize(
    "orders",
    [
        replace(ORDERS, by="\ud800"),
        replace(ORDERS, pinned={"t": (-1,)}),
        replace(ORDERS, pinned={"t": (2**31,)}),
        replace(ORDERS, pinned={"t": tuple(range(MAX_PARTITIONS)), "u": (0,)}),
        replace(ORDERS, at_ms=2**60),
    ],
    ids=["half a pair", "negative", "too large", "too many", "too late"],
)
def test_what_no_reader_would_take_is_not_encoded(orders: Orders) -> None:
    with pytest.raises(EncodeError):
        commands.encode(orders)


def test_as_many_pins_as_allowed_are_read_back() -> None:
    orders = replace(ORDERS, pinned={"t": tuple(range(MAX_PARTITIONS)), "u": ()})

    assert commands.decode(KEY, commands.encode(orders)) == orders
