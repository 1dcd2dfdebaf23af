from pathlib import Path

import pytest

from pipeline.run.query import _located


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        ("/data/a b%20/_checkpoint/batches", "file:///data/a b%20/_checkpoint/batches"),
        ("tables/_checkpoint", f"file://{Path.cwd()}/tables/_checkpoint"),
        ("file:///data/_checkpoint", "file:///data/_checkpoint"),
        ("abfss://c@account/_checkpoint", "abfss://c@account/_checkpoint"),
    ],
    ids=["absolute", "relative", "file", "store"],
)
def test_folder_is_one_of_this_host_whatever_hadoops_default_file_system_is(
    checkpoint: str, expected: str
) -> None:
    assert _located(checkpoint) == expected
