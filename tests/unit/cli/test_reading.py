from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from deltalake.fs import DeltaStorageHandler

from pipeline.reading import Tables


def test_tables_on_this_machine_are_read_without_a_file_system_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a process that ends soon after such a read is aborted now and then")

    root = tmp_path / "a folder with spaces, ä"
    write_deltalake(root / "lag", pa.table({"group": ["a", "b"], "lag": [1, 2]}), partition_by=["group"])
    for name in ("open_input_file", "open_input_stream"):
        monkeypatch.setattr(DeltaStorageHandler, name, refuse)

    found = Tables(str(root)).read("lag", columns=["lag"])

    assert sorted(found["lag"].to_pylist()) == [1, 2]
