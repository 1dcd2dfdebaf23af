"""The job with its tables on an object store."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.config.model import Config, TablesConfig
from pipeline.tables.reading import Tables
from pipeline.tables.schemas import TABLES
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store
from pipeline.tables.upkeep.backup import back_up
from tests.support.job.forgetting import ForgetfulJob
from tests.support.job.frames import NOW_MS, arrow
from tests.support.job.job import read_table
from tests.support.job.table_versions import versions_of


class StoredJob(ForgetfulJob):
    """The job with its tables under `root`, and a reader that reaches the store with its own options."""

    def __init__(
        self,
        bootstrap: str,
        root: str,
        options: Mapping[str, str],
        folder: Path,
        *,
        upkeep_every_batches: int = 1,
    ) -> None:
        """Make the topics; run nothing.

        Args:
            bootstrap: Broker.
            root: Of the tables.
            options: `tables.storage_options`.
            folder: Of this host, for the checkpoint.
            upkeep_every_batches: Batches between two rounds of maintenance.
        """
        super().__init__(bootstrap, folder)
        self.tables = TablesConfig(
            root=root,
            checkpoint=str(folder / "checkpoint"),
            storage_options=dict(options),
            upkeep_every_batches=upkeep_every_batches,
        )

    def config(self, **source: object) -> Config:
        return super().config(**source).model_copy(update={"tables": self.tables})

    def toml(self) -> str:
        """The configuration as a file, for commands."""
        options = "".join(f'{name} = "{value}"\n' for name, value in self.tables.storage_options.items())
        return (
            f'[kafka.properties]\n"bootstrap.servers" = "{self.bootstrap}"\n[tables]\nroot = "{self.tables.root}"\n'
            f'checkpoint = "{self.tables.checkpoint}"\n[tables.storage_options]\n{options}'
        )

    def assert_old_term_writes_nothing(self) -> None:
        """A driver is refused once another has a later term."""
        root, options = self.tables.root, self.tables.storage_options
        term = Store(root, term=0, storage_options=options).highest_term()
        old, new = (Store(root, term=term + more, storage_options=options) for more in (1, 2))
        new.touch()
        version = versions_of(new, ["quarantine"])

        old.write("quarantine", arrow("quarantine", {}), Stamp(batch_id=7, at_ms=NOW_MS))

        assert versions_of(new, ["quarantine"]) == version

    def assert_backup_is_whole(self, copy: Path) -> None:
        """A copy has every table, and the rows of `partition_lag`."""
        copied = {one.name for one in back_up(Tables(self.tables.root, self.tables.storage_options), copy)}

        assert copied == {table.name for table in TABLES}
        rows = Tables(str(copy)).read("partition_lag", columns=["group_id", "partition"]).to_pylist()
        wanted = read_table(self.config(), "partition_lag")
        assert sorted((row["group_id"], row["partition"]) for row in rows) == sorted(
            (row["group_id"], row["partition"]) for row in wanted
        )
