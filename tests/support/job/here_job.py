"""A job on a real broker whose Spark is this process: the source, the steps and the tables are the job's own."""

from typing import Any

import pyarrow as pa

from pipeline.config.model import Config
from pipeline.config.secret_values import resolve
from pipeline.decode.rows import ARROW
from pipeline.kafka import cluster
from pipeline.kafka.client import unresolved
from pipeline.publish.pokes import Pokes
from pipeline.run.assembly import (
    admin_client,
    as_found,
    build_filters,
    build_readiness,
    build_services,
    build_source,
    cluster_name,
)
from pipeline.run.batch.steps import Done, run
from pipeline.run.driver import Driver, ReadProgress
from pipeline.run.memory import recall
from pipeline.run.replay import ReplayContext
from pipeline.source.datasource import StreamReader
from pipeline.tables.owner import ownership
from pipeline.tables.store import Store
from pipeline.tables.upkeep.creation import create_tables
from tests.support.job.frames import NOW_MS
from tests.support.spark.read_frames import HereFrame, HereSpark
from tests.support.waiting import wait_until


class HereJob:
    """Takes over tables and runs batches, one for each call.

    Attributes:
        store: The tables.
        driver: Of them.
    """

    def __init__(self, config: Config) -> None:
        """Contact the cluster, and take over the tables.

        Args:
            config: Of the job.
        """
        create_tables(config.tables.root, retention_hours=1, storage_options={})
        self._admin, _ = admin_client(config)
        found = cluster.inspect(self._admin, config.control, timeout_s=10, offsets=config.source.offsets)
        config = as_found(config, found)
        name, owner = cluster_name(config, found), ownership.owner_name(NOW_MS)
        tables = Store(config.tables.root, term=0, storage_options=resolve(config.tables.storage_options))
        self.store = ownership.acquire(tables, cluster=name, owner=owner, now_ms=NOW_MS)
        recalled = recall(
            self.store, cluster_id=found.cluster_id, filters=build_filters(config, name).identity
        )
        spark: Any = HereSpark()
        self.driver = Driver(
            spark=spark,
            services=build_services(
                config,
                found,
                self._admin,
                store=self.store,
                owner=owner,
                pokes=Pokes(unresolved(config)),
                is_once=False,
            ),
            progress=ReadProgress(
                readiness=build_readiness(config, started_at_ms=NOW_MS), stamp=recalled.keep(self.store)
            ),
            replay=ReplayContext(is_new_cluster=recalled.is_new_cluster),
        )
        query = self.driver.replay.query
        self._reader = StreamReader(build_source(self.driver.services, query=query, once=True, attempts=4))
        self._offset: dict[str, Any] = {}
        self._batches = 0

    def batch(self) -> Done:
        """Run the next batch, once it is due."""
        before = self._offset

        def is_due() -> bool:
            self._offset = self._reader.latestOffset(before)
            return self._offset != before

        wait_until(is_due, what="a batch that is due")
        parts = self._reader.partitions(before, self._offset)
        rows = pa.Table.from_batches([one for part in parts for one in self._reader.read(part)], ARROW)
        frame: Any = HereFrame(rows)
        done = run(self.driver, self._batches, frame)
        self._batches += 1
        assert isinstance(done, Done), done
        return done

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table."""
        return self.store.arrow(table).to_pylist()
