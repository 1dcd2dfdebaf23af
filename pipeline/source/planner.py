"""Source: chooses what the next batch reads, in the process that Spark starts for it next to the driver.

The planner knows only what the tables and the brokers report, because the process may die at any moment. If it cannot
ask, the driver gets the cause as the failure of the batch.
"""

import os
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from pipeline import clock
from pipeline.config.secret_values import resolve
from pipeline.errors import PipelineError, StorageUnavailableError, StoreError
from pipeline.kafka.client import admin_of
from pipeline.kafka.positions import Answer, Intake, Limits, PartitionKey, choose_spans
from pipeline.kafka.sources.records.ends import EndsAsker
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.source.deadline import within
from pipeline.source.offset import SourceOffset, state_of
from pipeline.source.pace import Pace
from pipeline.source.settings import SourceSettings
from pipeline.tables.stamp import Stamp
from pipeline.tables.store import Store

Ask: TypeAlias = Callable[[], Mapping[PartitionKey, Answer]]
Stamps: TypeAlias = Callable[[str], Stamp | None]
Doubtful: TypeAlias = Callable[[], Mapping[str, str]]

STORAGE_ERRORS = (StoreError, DeltaError, OSError)
"""Errors of tables that cannot be read."""
_READ_UP_TO = "partition_lag"
_BEGUN = "topic_offsets"


class Planner:
    """Chooses the batches of one query.

    Attributes:
        unreadable: Groups on which Kafka's client fails, according to the last complete list of groups.
    """

    def __init__(
        self,
        settings: SourceSettings,
        *,
        ask: Ask | None = None,
        stamps: Stamps | None = None,
        doubtful: Doubtful | None = None,
        pace: Pace | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        """Nothing is asked yet.

        Args:
            settings: Of the source.
            ask: Returns the leaders' answers for every log; None asks the brokers.
            stamps: Newest stamp of a table; None reads the tables.
            doubtful: Groups with unconfirmed rows, and the reason; None reads the tables.
            pace: Schedule of the batches.
            now_ms: Time in ms since 1970.
        """
        self._settings = settings
        self._ask = ask or EndsAsker(
            lambda: admin_of(settings.properties),
            settings.topics,
            timeout_s=settings.timeout_s,
        )
        self._stamps = stamps or _stamps(settings)
        self._doubtful = doubtful or _doubtful(settings)
        self._pace = pace or Pace(settings.interval_s)
        self._now_ms = now_ms
        self.unreadable: AbstractSet[str] = frozenset()
        self._last: SourceOffset | None = None
        self._chosen_from: Stamp | None = None
        self._is_settled = True

    def next_offset(self) -> SourceOffset | None:
        """Return the offset of the next batch; None while none is due."""
        with within(self._settings.choosing_s):
            self._hurry()
            if not self._pace.is_due():
                return None
            self._pace.begun()
            self._last, self._is_settled = self._chosen(), False
        return self._last

    def begun(self, offset: SourceOffset) -> Stamp | None:
        """Return the first stamp that the batch of this offset has stored; None if it did not run before.

        Raises:
            StoreError, DeltaError, OSError: The tables cannot be read.
        """
        if self._last is not None and self._last.tick == offset.tick:
            return None
        stamp = self._stamps(_BEGUN)
        return stamp if stamp is not None and stamp.tick == offset.tick else None

    def parallelism(self) -> int:
        """Tasks that Spark ran at once when it wrote the newest batch; before the first, the cores of this host."""
        stamp = self._newest()
        return max(1, stamp.parallelism if stamp is not None else os.cpu_count() or 1)

    def doubtful(self) -> Mapping[str, str]:
        """Groups that had no answer when they were asked for last, and why.

        Raises:
            StoreError, DeltaError, OSError: The tables cannot be read.
        """
        return self._doubtful()

    def of_unknown_type(self) -> Collection[str]:
        """Stored groups of which coordinators named no type: those of Streams, Connect and other protocols.

        Raises:
            StoreError, DeltaError, OSError: The tables cannot be read.
        """
        is_unknown = pc.field("group_type") == "unknown"
        rows = _store(self._settings).arrow("consumer_groups", ["group_id"], is_unknown)
        return {*rows["group_id"].to_pylist()}

    def quiet(self, tick: int) -> AbstractSet[str]:
        """Return groups that need no question now: their commits have not changed for long, and their answer is recent.

        Args:
            tick: Of the batch.
        """
        stamp, age_ms = self._newest(), self._settings.group_max_age_s * 1000
        # The next batch, which could ask, comes an interval later.
        oldest_ms = tick + self._settings.interval_s * 1000 - age_ms
        return {
            group
            for group, (at_ms, since_ms) in ({} if stamp is None else stamp.asked).items()
            # An answer from the future was dated by a clock that was ahead: how old it is nobody knows.
            if at_ms - since_ms >= age_ms and oldest_ms <= at_ms <= tick
        }

    def _newest(self) -> Stamp | None:
        """The stamp that the last batch was chosen from: none is written before its parts are made."""
        return self._stamps(_READ_UP_TO) if self._last is None else self._chosen_from

    def _hurry(self) -> None:
        """Begin at once where records were left and the last batch has read some of those before them."""
        last = self._last
        if self._is_settled or last is None or not last.intake.left:
            return
        self._is_settled = True
        try:
            stamp = self._stamps(_READ_UP_TO)
        except STORAGE_ERRORS:
            # The next batch is due anyway, and reports it.
            return
        if stamp is None or stamp.tick != last.tick:
            return
        positions = stamp.positions or {}
        if any(
            span.key in positions and positions[span.key].offset > span.start for span in last.intake.spans
        ):
            self._pace.hurry()

    def _chosen(self) -> SourceOffset:
        tick = max(self._now_ms(), 0 if self._last is None else self._last.tick + 1)
        try:
            stamp = self._chosen_from = self._stamps(_READ_UP_TO)
        except STORAGE_ERRORS as error:
            return self._offset(tick, made_from="unknown", failure=unreadable(error))
        made_from = state_of(stamp)
        try:
            answers = self._ask()
        except PipelineError as error:
            return self._offset(tick, made_from=made_from, failure=(type(error).__name__, str(error)))
        return self._offset(
            tick, made_from=made_from, intake=self._intake(stamp, answers, tick), answers=answers
        )

    def _offset(self, tick: int, **fields: Any) -> SourceOffset:
        of = self._settings
        return SourceOffset(tick=tick, cluster_id=of.cluster_id, chosen_by=of.query, **fields)

    def _intake(self, stamp: Stamp | None, answers: Mapping[PartitionKey, Answer], now_ms: int) -> Intake:
        is_own = stamp is not None and self._last is not None and stamp.tick == self._last.tick
        kept = stamp.tombstones_kept_ms if stamp and is_own else self._settings.tombstones_kept_ms
        return choose_spans(
            {} if stamp is None else stamp.positions or {},
            answers,
            distrusted={}
            if stamp is None
            else {(topic, number): why for topic, number, why in stamp.distrusted},
            limits=Limits(
                most_records=self._settings.most_records,
                tombstones_kept_ms=kept,
                tolerated_ms=self._settings.tolerated_ms,
                followed=frozenset(stamp.followed) if stamp and is_own else frozenset(),
                control_topics=frozenset(self._settings.topics) - {OFFSETS_TOPIC},
            ),
            now_ms=now_ms,
        )


def unreadable(error: Exception) -> tuple[str, str]:
    """The failure of a batch for which the tables could not be read."""
    return StorageUnavailableError.__name__, " ".join(str(error).split())


def _store(settings: SourceSettings) -> Store:
    return Store(settings.root, term=0, storage_options=resolve(settings.storage_options))


def _stamps(settings: SourceSettings) -> Stamps:
    return _store(settings).stamp


def _doubtful(settings: SourceSettings) -> Doubtful:
    store = _store(settings)

    def read() -> Mapping[str, str]:
        is_doubtful = pc.field("unconfirmed_reason").is_valid()
        rows = store.arrow("consumer_groups", ["group_id", "unconfirmed_reason"], is_doubtful)
        return dict(zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True))

    return read
