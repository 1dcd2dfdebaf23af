from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake
from deltalake.fs import DeltaStorageHandler

from pipeline.errors import StoreError
from pipeline.tables.reading import Tables


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


def test_newest_entry_of_the_log_that_is_empty_is_named(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "lag", pa.table({"lag": [1]}))
    write_deltalake(tmp_path / "lag", pa.table({"lag": [2]}), mode="append")
    max((tmp_path / "lag" / "_delta_log").glob("*.json")).write_text("")

    with pytest.raises(StoreError, match=r"^the newest entry in the log of table lag at .* is empty"):
        Tables(str(tmp_path)).written_at("lag")


def test_column_that_an_older_table_has_not_got_is_null(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "lag", pa.table({"group": ["a", "b"], "lag": [1, 2]}))

    found = Tables(str(tmp_path)).read("lag", columns=["later", "lag"])

    assert found.column_names == ["later", "lag"]
    assert found.sort_by("lag").to_pylist() == [{"later": None, "lag": 1}, {"later": None, "lag": 2}]


@pytest.mark.parametrize("damaged", ["all", "nothing is left", "first page"])
def test_damaged_file_is_told_from_a_store_that_does_not_answer(tmp_path: Path, damaged: str) -> None:
    write_deltalake(tmp_path / "lag", pa.table({"lag": [1]}))
    (file,) = (tmp_path / "lag").glob("*.parquet")
    good = file.read_bytes()
    third = len(good) // 3
    of_damage = {
        "all": bytes(len(good)),
        "nothing is left": b"",
        "first page": good[:4] + bytes(third) + good[4 + third :],
    }
    file.write_bytes(of_damage[damaged])

    with pytest.raises(StoreError, match="a file of the table is damaged: stop the stream, and restore"):
        Tables(str(tmp_path)).read("lag", columns=["lag"])


def test_wrong_question_is_not_taken_for_a_damaged_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "lag", pa.table({"lag": [1]}))

    with pytest.raises(StoreError) as error:
        Tables(str(tmp_path)).read("lag", columns=["lag"], where=pc.field("none") == 1)

    assert "damaged" not in str(error.value)
