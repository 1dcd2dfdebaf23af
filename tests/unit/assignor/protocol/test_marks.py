import pytest

from assignor.protocol.marks import HandOverMark, split, with_mark

MARK = HandOverMark(kind="release", generation=42, epoch=17, hop=1)


def test_mark_stands_behind_what_the_user_has_committed() -> None:
    assert with_mark("batch 7", MARK) == "batch 7lagwise:1:release:42:17:1"
    assert split("batch 7lagwise:1:release:42:17:1") == ("batch 7", MARK)
    assert split("batch 7lagwise:1:release:42:17:1\0") == ("batch 7", MARK)
    assert split("lagwise:1:taken:0:9223372036854775807:2") == (
        "",
        HandOverMark(kind="taken", generation=0, epoch=2**63 - 1, hop=2),
    )


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "batch 7",
        "lagwise:1:release:42:17:1 ",
        "lagwise:1:release:42:17:1\n",
        "lagwise:1:release:42:17",
        "lagwise:1:release:042:17:1",
        "lagwise:1:release:42:17:9223372036854775808",
        "lagwise:1:release:42:17:٣",
        "lagwise:2:release:42:17:1",
        "lagwise:1:lent:42:17:1",
    ],
)
def test_metadata_without_such_an_end_is_all_the_users(metadata: str) -> None:
    assert split(metadata) == (metadata, None)
