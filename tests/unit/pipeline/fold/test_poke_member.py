"""No table shows lagwise's own member of a KIP-848 group, and no consumer is mistaken for it."""

from typing import Any

import pytest

from assignor.protocol.kafka.consumer_group import MemberState
from pipeline.kafka.poke_member import CLIENT_ID, NOTHING
from tests.support.groups.consumer_group_records import (
    Written,
    current,
    epoch,
    gone,
    metadata,
    regex,
    target,
    target_epoch,
)
from tests.support.groups.consumer_group_table import Groups

STABLE: tuple[Written, ...] = (
    metadata("a", "t", client_id="consumer", client_host="/10.0.0.1"),
    epoch(2),
    target("a", {"t": [0, 1]}),
    target_epoch(2),
    current("a", 2, {"t": [0, 1]}),
)
AS_SENT = f"({NOTHING})"
"""The expression as librdkafka sends it."""
JOINED = (
    metadata("p", client_id=CLIENT_ID, client_host="/10.0.0.9", topic_regex=AS_SENT),
    current("p", 2),
)
LEFT = (gone(current("p", 2)), gone(JOINED[0]))


def shown(found: Groups) -> dict[str, Any]:
    row = found.row()
    return {name: row[name] for name in ("state", "generation", "target_epoch", "members", "reconciliation")}


def test_group_is_shown_as_if_the_member_had_never_been_there() -> None:
    found = Groups().run(*STABLE)
    before = shown(found)

    found.run(*JOINED, regex(AS_SENT))
    beside = shown(found)
    found.run(*LEFT, gone(regex(AS_SENT)))

    assert beside == before == shown(found)


def test_member_of_which_half_of_the_leave_is_read_is_not_shown() -> None:
    found = Groups().run(*STABLE)
    before = shown(found)

    assert shown(found.run(*JOINED).run(LEFT[0])) == before


def test_state_is_that_of_the_consumers() -> None:
    late = current("p", 1, state=MemberState.UNRELEASED_PARTITIONS)

    assert Groups().run(*STABLE, JOINED[0], late).row()["state"] == "Stable"
    assert Groups().run(*STABLE[1:2], target_epoch(2), *JOINED).row()["state"] == "Empty"


@pytest.mark.parametrize(
    ("topics", "fields"),
    [
        (("t",), {"topic_regex": AS_SENT}),
        ((), {"topic_regex": "t.*"}),
        ((), {"topic_regex": None}),
        ((), {"topic_regex": AS_SENT, "client_id": "consumer"}),
    ],
)
def test_member_that_may_read_something_is_shown(topics: tuple[str, ...], fields: dict[str, Any]) -> None:
    given = {"client_id": CLIENT_ID, "client_host": "/10.0.0.9", **fields}

    found = Groups().run(*STABLE, metadata("p", *topics, **given), current("p", 2))

    assert found.members("member_id") == [("a",), ("p",)]
