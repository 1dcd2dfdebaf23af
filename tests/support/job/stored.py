"""The job with its tables on an object store."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.config.model import Config, TablesConfig
from tests.support.job.forgetting import ForgetfulJob


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
