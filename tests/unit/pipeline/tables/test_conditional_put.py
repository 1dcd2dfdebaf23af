"""Whether a store takes two commits of one version, as one without conditional puts does."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pipeline.errors import StoreError
from pipeline.tables.upkeep.creation import _check_conditional_put


def test_store_that_refuses_the_second_commit_of_a_version_is_used(tmp_path: Path) -> None:
    for _ in range(2):
        _check_conditional_put(str(tmp_path / "probe"), None)

    assert DeltaTable(str(tmp_path / "probe")).version() == 2


def test_store_that_lets_one_commit_overwrite_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = DeltaTable.create_write_transaction

    def forgetting(handle: DeltaTable, *given: Any, **more: Any) -> None:
        # Who does not look whether a version is there writes it as if it were not.
        (tmp_path / "probe" / "_delta_log" / f"{handle.version() + 1:020}.json").unlink(missing_ok=True)
        commit(handle, *given, **more)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", forgetting)

    with pytest.raises(StoreError, match=r"lets one commit overwrite another.*use such a store, or a folder"):
        _check_conditional_put(str(tmp_path / "probe"), None)
