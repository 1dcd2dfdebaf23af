"""Who publishes for a cluster: which tables are the same, and what a record says."""

from dataclasses import replace

import pytest

from assignor.protocol.control import encode_key
from pipeline.publish.claim import Claim, decode, is_claim, key_of

MINE = Claim(owner="a/1/2", host="a", root="/tables", tables_id="one")


def test_claim_is_read_as_it_was_written() -> None:
    assert decode(MINE.encode().encode()) == MINE


@pytest.mark.parametrize("value", [None, b"", b"{}", b"[1]", b"\xff", b'{"publisher":{"owner":"a"}}'])
def test_record_that_is_no_claim_claims_nothing(value: bytes | None) -> None:
    assert decode(value) is None


def test_key_of_a_claim_is_no_groups() -> None:
    assert is_claim(key_of("c"))
    assert not any(is_claim(key) for key in (None, b"{", encode_key("c", "g")))


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(replace(MINE, owner="a/9/9"), True, id="started again"),
        pytest.param(replace(MINE, host="b"), True, id="another host has the disk now"),
        pytest.param(replace(MINE, tables_id="two"), True, id="tables were lost"),
        pytest.param(replace(MINE, root="/trial"), False, id="a copy beside them"),
        pytest.param(replace(MINE, root="/trial", tables_id="two"), False, id="a trial"),
        pytest.param(replace(MINE, host="b", tables_id="two"), False, id="the same path of another host"),
    ],
)
def test_tables_are_the_same_by_path_and_host_or_by_path_and_id(other: Claim, *, is_same: bool) -> None:
    assert MINE.is_of_same_tables(other) == is_same
