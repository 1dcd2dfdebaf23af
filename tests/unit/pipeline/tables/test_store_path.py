from pathlib import Path

import pytest

from pipeline.tables.store import path_of


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("s3a://bucket/lagwise/", "s3a://bucket/lagwise/lag"),
        ("/data/lagwise", "/data/lagwise/lag"),
        (".lagwise/tables/", f"{Path.cwd()}/.lagwise/tables/lag"),
    ],
    ids=["url", "absolute", "relative"],
)
def test_a_table_lies_under_the_root(root: str, expected: str) -> None:
    assert path_of(root, "lag") == expected
