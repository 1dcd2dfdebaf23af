from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from pipeline.operate.sql.versions import span
from pipeline.tables.reading import Tables


def _five_versions(world: Any) -> Path:
    for partition in range(5):
        world.replace("partition_lag", {"partition": partition})
    return Path(world.root) / "partition_lag"


def test_all_versions_are_there_at_first(world: Any) -> None:
    _five_versions(world)

    oldest, newest = span(Tables(str(world.root)), "partition_lag")

    assert (oldest.number, newest.number) == (0, 4)
    assert oldest.at <= newest.at


def test_version_in_the_log_whose_files_are_gone_is_not_there(world: Any) -> None:
    folder = _five_versions(world)
    for uri in DeltaTable(str(folder), version=2).file_uris():
        Path(uri).unlink()

    oldest, _ = span(Tables(str(world.root)), "partition_lag")

    assert oldest.number == 3


def test_version_that_the_log_begins_behind_is_not_there(world: Any) -> None:
    folder = _five_versions(world)
    DeltaTable(str(folder), version=3).create_checkpoint()
    for version in range(3):
        (folder / "_delta_log" / f"{version:020}.json").unlink()

    oldest, newest = span(Tables(str(world.root)), "partition_lag")

    assert (oldest.number, newest.number) == (3, 4)
