"""Group records whose bytes are whole and whose content is not what anybody expects."""

import pyarrow as pa
import pytest

from assignor.protocol.group_metadata import GroupMember
from pipeline.columns import TIMESTAMP
from pipeline.decode_groups import group_rows
from tests.support.group_records import group_record, member

YEAR_33658_US = 10**18
TORN = b"\x00\x03\x00"


def records(
    *members: GroupMember, at_us: int = 0, key: bytes | None = None, assignor: str = "range"
) -> pa.RecordBatch:
    record = group_record("g", *members, assignor=assignor)
    return pa.RecordBatch.from_pydict(
        {
            "topic": ["__consumer_offsets"],
            "partition": pa.array([3], pa.int32()),
            "offset": [7],
            "timestamp": pa.array([at_us], TIMESTAMP),
            "key": [record.key if key is None else key],
            "value": [record.value],
        }
    )


def rows(batch: pa.RecordBatch) -> tuple[int, list[str]]:
    good, bad = group_rows(batch, lambda _group: True)
    return len(good), [row["reason"] for row in bad]


@pytest.mark.parametrize("at_us", [0, YEAR_33658_US], ids=["1970", "33658"])
def test_record_of_any_time_is_read(at_us: int) -> None:
    assert rows(records(member("m", "t"), at_us=at_us)) == (1, [])


def test_bad_record_keeps_its_time_whatever_it_is() -> None:
    _, (bad,) = group_rows(records(member("m", subscription=TORN), at_us=YEAR_33658_US), lambda _group: True)

    assert pa.array([bad["timestamp"]], TIMESTAMP).cast(pa.int64()).to_pylist() == [YEAR_33658_US]


def test_record_with_many_unreadable_members_is_in_quarantine_once() -> None:
    torn = [member(f"m{number}", subscription=TORN) for number in range(3)]

    good, (reason,) = rows(records(*torn))

    assert good == 1
    assert reason.startswith("member m0: ")
    assert reason.endswith("(and 2 more)")


@pytest.mark.parametrize(
    ("assignor", "protocol"),
    [
        ("range", "eager"),
        ("cooperative-sticky", "cooperative"),
        ("constrained-cooperative-sticky", "cooperative"),
        ("somebody's own", None),
    ],
)
def test_rebalance_protocol_follows_the_selected_assignor(assignor: str, protocol: str | None) -> None:
    (row,), _ = group_rows(records(member("m", "t"), assignor=assignor), lambda _group: True)

    assert (row["assignor"], row["rebalance_protocol"]) == (assignor, protocol)
