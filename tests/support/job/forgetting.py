"""A job that runs now and then, between two runs of which something is lost or restored, and what its tables ought to say.

Each run is `--once`. The commits are forged, so the truth is known without asking a broker.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from pipeline.config.model import ClusterConfig, Config, SourceConfig
from tests.support.brokers.broker import (
    OFFSETS_TOPIC,
    admin_client,
    create_offsets_topic,
    create_topics,
    produce,
    small_broker,
)
from tests.support.brokers.inject import commit_record, inject, offsets_partition
from tests.support.groups.group_records import group_record, member
from tests.support.job.job import RunningJob, job_config, read_table
from tests.support.waiting import wait_until

END = 100
State = Mapping[tuple[str, int], int]
"""Committed offset by group and partition."""


class ForgetfulJob:
    """A broker with forged commits, the tables of a job that runs now and then, and what they ought to say."""

    def __init__(self, bootstrap: str, root: Path) -> None:
        """Make the offsets topic and a topic of two partitions; run nothing."""
        self.bootstrap = bootstrap
        self.root = root
        self.commits: dict[tuple[str, int], int] = {}
        self.named: set[str] = set()
        """Groups that have a group record; it outlives their commits."""
        self.messages: list[str] = []
        create_offsets_topic(bootstrap)
        create_topics(self.bootstrap, {"t": 2})
        produce(self.bootstrap, "t", {0: END, 1: END})

    def commit(self, group: str, partition: int, offset: int | None) -> None:
        """A commit, or its deletion."""
        if group not in self.named:
            self.named.add(group)
            inject(self.bootstrap, [group_record(group, member("m", "t", assigned={"t": (partition,)}))])
        inject(self.bootstrap, [commit_record(group, "t", partition, offset)])
        if offset is None:
            del self.commits[group, partition]
        else:
            self.commits[group, partition] = offset

    def config(self, **source: object) -> Config:
        return job_config(
            self.bootstrap,
            self.root,
            cluster=ClusterConfig(name="same"),
            source=SourceConfig(request_timeout_s=5, **source),  # type: ignore[arg-type]  # the tests know their types
        )

    def run(self, **source: object) -> None:
        job = RunningJob(self.config(**source), once=True)
        self.messages = job.messages
        job.run_out()

    def rows(self) -> State:
        """What the table says of the groups that have commits, all of it final and with the right lag."""
        rows = [
            row for row in read_table(self.config(), "partition_lag") if row["committed_offset"] is not None
        ]
        assert not any(row["provisional"] for row in rows)
        assert all(row["lag"] == END - row["committed_offset"] for row in rows)
        return {(row["group_id"], row["partition"]): row["committed_offset"] for row in rows}

    def groups(self) -> set[str]:
        """The groups that the table lists: all that were ever named, when it is right."""
        return {row["group_id"] for row in read_table(self.config(), "consumer_groups")}

    def said(self, words: str) -> bool:
        return any(words in line for line in self.messages)

    def lose(self, *tables: str) -> None:
        """Remove these tables; all of them when none is named."""
        names = tables or [folder.name for folder in self.root.iterdir() if folder.name != "_checkpoint"]
        for name in names:
            folder = self.root / name
            shutil.rmtree(folder) if folder.is_dir() else folder.unlink()

    def compact(self, partition: int) -> None:
        """Return when the tombstones that the partition held are gone."""
        names = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "100"}
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in names.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, OFFSETS_TOPIC, incremental_configs=entries)
        admin = admin_client(self.bootstrap)
        for future in admin.incremental_alter_configs([resource]).values():
            future.result()
        filler = next(name for i in range(1000) if offsets_partition(name := f"filler-{i}") == partition)

        def is_clean() -> bool:
            # The newest segment is never cleaned; another record after segment.ms begins a new one.
            inject(self.bootstrap, [commit_record(filler, "t", 0, 1)])
            return not _has_tombstone(self.bootstrap, partition)

        wait_until(is_clean, what="compaction", within_s=60)
        self.commits[filler, 0] = 1


@contextmanager
def forgetful_job(folder: Path) -> Iterator[ForgetfulJob]:
    """A job that has run once over six groups, of a commit each, on a broker that compacts as fast as it is asked to."""
    with small_broker(log_cleaner_backoff_ms="200") as broker:
        made = ForgetfulJob(broker.bootstrap_servers, folder)
        for number in range(6):
            made.commit(f"g{number}", number % 2, number)
        made.run()
        assert made.rows() == made.commits
        yield made


def _has_tombstone(bootstrap: str, partition: int) -> bool:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "looks", "enable.partition.eof": True})
    consumer.assign([TopicPartition(OFFSETS_TOPIC, partition, OFFSET_BEGINNING)])
    found = False
    while (message := consumer.poll(10)) is not None and message.error() is None:
        found = found or message.value() is None
    consumer.close()
    return found
