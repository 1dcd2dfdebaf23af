import pytest

from assignor.errors import DecodeError, EncodeError
from assignor.protocol.ranges import format_ranges, parse_ranges

FORMS = [("", ()), ("0", (0,)), ("0-5,9", (0, 1, 2, 3, 4, 5, 9)), ("3-4,2147483647", (3, 4, 2**31 - 1))]


@pytest.mark.parametrize(("text", "partitions"), FORMS, ids=[text or "empty" for text, _ in FORMS])
def test_text_and_partitions_stand_for_each_other(text: str, partitions: tuple[int, ...]) -> None:
    assert format_ranges(partitions) == text
    assert parse_ranges(text, at_most=10) == partitions


def test_order_and_repetition_do_not_matter() -> None:
    assert format_ranges([9, 2, 0, 1, 2]) == "0-2,9"


@pytest.mark.parametrize(
    "text",
    [
        "x", "-1", "1-", ",1", "1,", "1,,2", " 1", "1 ", "1-1", "2-1", "0-1,2", "0-1,1", "5,3", "01", "0-01", "+1",
        "1_0", "٣", "2147483648", "0-2147483648", "99999999999", "1\n",
    ],
)  # fmt: skip
def test_any_other_form_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="partition ranges"):
        parse_ranges(text, at_most=10)


def test_too_many_partitions_are_refused_before_they_are_spread_out() -> None:
    with pytest.raises(DecodeError, match="more than 3 partitions"):
        parse_ranges("0-2147483647", at_most=3)
    with pytest.raises(DecodeError, match="more than 3 partitions"):
        parse_ranges("0-1,3-4", at_most=3)


@pytest.mark.parametrize("partition", [-1, 2**31])
def test_number_that_is_no_partition_is_not_written(partition: int) -> None:
    with pytest.raises(EncodeError, match=str(partition)):
        format_ranges([0, partition])
