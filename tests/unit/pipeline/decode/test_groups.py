"""Group records whose bytes are whole and whose content is not what anybody expects."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from assignor.protocol.kafka.consumer import Subscription, TopicPartitions, encode_subscription
from assignor.protocol.kafka.group_metadata import GroupMember
from assignor.protocol.kafka.offsets import encode_group_metadata_key
from pipeline.arrow_columns import TIMESTAMP
from pipeline.decode import groups as decode_groups
from pipeline.decode.groups import group_rows
from tests.support.groups.group_records import group_record, member

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
    found = group_rows(batch, lambda _group: True)
    return len(found.good), [row["reason"] for row in found.bad]


@pytest.mark.parametrize("at_us", [0, YEAR_33658_US], ids=["1970", "33658"])
def test_record_of_any_time_is_read(at_us: int) -> None:
    assert rows(records(member("m", "t"), at_us=at_us)) == (1, [])


def test_bad_record_keeps_its_time_whatever_it_is() -> None:
    (bad,) = group_rows(records(member("m", subscription=TORN), at_us=YEAR_33658_US), lambda _group: True).bad

    assert pa.array([bad["timestamp"]], TIMESTAMP).cast(pa.int64()).to_pylist() == [YEAR_33658_US]


def test_record_with_many_unreadable_members_is_in_quarantine_once() -> None:
    torn = [member(f"m{number}", subscription=TORN) for number in range(3)]

    good, (reason,) = rows(records(*torn))

    assert good == 1
    assert reason.startswith("member m0: ")
    assert reason.endswith("(and 2 more)")


@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
def test_what_a_member_has_is_null_where_it_cannot_be_read_and_empty_where_it_has_nothing(
    protocol_type: str,
) -> None:
    record = group_record("g", member("m", subscription=TORN), protocol_type=protocol_type)
    read = records().set_column(5, "value", pa.array([record.value], pa.binary()))

    (row,) = group_rows(read, lambda _group: True).good

    (one,) = row["members"]
    assert [one[name] for name in ("topics", "owned", "assigned")] == [None, None, None]
    (row,) = group_rows(records(member("m", "t")), lambda _group: True).good
    assert [row["members"][0][name] for name in ("topics", "owned", "assigned")] == [["t"], {}, {}]
    assert group_rows(records(), lambda _group: True).good[0]["members"] == []


def joining(owned: TopicPartitions | None = None, *, generation: int = -1) -> GroupMember:
    subscription = Subscription(topics=("t",), owned=owned or {}, generation=generation)
    return member("m", subscription=encode_subscription(subscription))


FIRST, AGAIN, HOLDING = joining(), joining(generation=6), joining({"t": (0,)}, generation=6)


@pytest.mark.parametrize(
    ("assignor", "members", "protocol"),
    [
        ("range", [FIRST], "eager"),
        ("cooperative-sticky", [HOLDING, FIRST], "cooperative"),
        # Also lists `range`: Kafka's consumers are eager then, whatever is selected.
        ("cooperative-sticky", [AGAIN, FIRST], "eager"),
        ("cooperative-sticky", [FIRST], None),
        ("constrained-cooperative-sticky", [HOLDING], "cooperative"),
        ("somebody's own", [HOLDING], "cooperative"),
        ("somebody's own", [AGAIN], None),
    ],
)
def test_rebalance_protocol_is_the_one_that_members_show(
    assignor: str, members: list[GroupMember], protocol: str | None
) -> None:
    (row,) = group_rows(records(*members, assignor=assignor), lambda _group: True).good

    assert (row["assignor"], row["rebalance_protocol"]) == (assignor, protocol)


def log_of(*values: bytes | None, offsets: list[int] | None = None, key: str = "g") -> pa.RecordBatch:
    """Records of one group, oldest first unless `offsets` says otherwise."""
    n = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "topic": ["__consumer_offsets"] * n,
            "partition": pa.array([3] * n, pa.int32()),
            "offset": offsets or list(range(n)),
            "timestamp": pa.array([0] * n, TIMESTAMP),
            "key": pa.array([encode_group_metadata_key(key)] * n, pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def generation(number: int) -> bytes:
    return group_record("g", member("m", "t"), generation=number).value or b""


def everything(_group: str) -> bool:
    return True


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The values that were decoded."""
    seen: list[bytes] = []
    decode: Callable[[bytes], object] = decode_groups.decode_group_metadata

    def noting(value: bytes) -> object:
        seen.append(value)
        return decode(value)

    monkeypatch.setattr(decode_groups, "decode_group_metadata", noting)
    return seen


def test_only_the_newest_record_of_a_group_is_decoded_and_the_others_are_counted(
    decoded: list[bytes],
) -> None:
    found = group_rows(log_of(generation(2), generation(3), generation(1), offsets=[5, 9, 4]), everything)

    assert [(row["generation"], row["position"]) for row in found.good] == [(3, 9)]
    assert found.superseded == 2
    assert len(decoded) == 1


def test_bad_record_does_not_hide_the_good_one_before_it() -> None:
    found = group_rows(log_of(generation(1), generation(2), TORN, b"\xff"), everything)

    assert [row["generation"] for row in found.good] == [2]
    assert sorted(row["offset"] for row in found.bad) == [2, 3]
    assert found.superseded == 1


def test_tombstone_supersedes_what_is_before_it_and_not_what_comes_after() -> None:
    gone = group_rows(log_of(generation(1), None), everything)
    back = group_rows(log_of(generation(1), None, generation(1)), everything)

    assert [row["row_kind"] for row in gone.good] == ["group_tombstone"]
    assert [row["row_kind"] for row in back.good] == ["group"]
    assert (gone.superseded, back.superseded) == (1, 2)


def test_groups_and_partitions_of_the_offsets_topic_are_kept_apart() -> None:
    here, other = log_of(generation(1)), log_of(generation(2), key="other")
    elsewhere = here.set_column(1, "partition", pa.array([4], pa.int32()))
    (batch,) = pa.Table.from_batches([here, other, elsewhere]).combine_chunks().to_batches()

    found = group_rows(batch, everything)

    assert sorted((row["group_id"], row["offsets_partition"]) for row in found.good) == [
        ("g", 3),
        ("g", 4),
        ("other", 3),
    ]
    assert found.superseded == 0


def test_group_that_is_not_wanted_has_no_row_and_no_count() -> None:
    found = group_rows(log_of(generation(1), generation(2)), lambda _group: False)

    assert (found.good, found.bad, found.superseded) == ([], [], 0)
