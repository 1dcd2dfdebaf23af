"""Source: commits, members and log ends for any query or notebook, without the tables of a job.

    spark.dataSource.register(LagwiseSource)
    spark.read.format("lagwise").option("kafka.bootstrap.servers", "broker:9092").load()
    spark.readStream.format("lagwise").option("kafka.bootstrap.servers", "broker:9092").load()

Reading begins at the start of the offsets topic. A silent leader or a short read fails the batch with the
cause: nothing here remembers skipped records.
"""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from pipeline.config.model import Config, KafkaConfig, SourceConfig
from pipeline.decode.filters import ControlTopics, Filters
from pipeline.errors import BrokerUnavailableError, ConfigError
from pipeline.kafka.client import TOKEN_PROVIDER, admin_of, unresolved
from pipeline.kafka.positions import End, PartitionKey, Span, shares
from pipeline.kafka.sources.log_offsets import ask
from pipeline.kafka.sources.records.ends import EndsAsker
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.source.deadline import within
from pipeline.source.pace import Pace
from pipeline.source.partitions import RECORDS_A_TASK, Part
from pipeline.source.reading import rows_of_part
from pipeline.source.settings import KAFKA, SourceSettings, named

_PATTERNS = ("topics_include", "topics_exclude", "groups_include", "groups_exclude")
_BETWEEN_PATTERNS = re.compile(r",(?![^{\[(]*[}\])])")
"""A comma outside of brackets: `order{1,2}` is one pattern."""
_TASKS = 64
"""At most, of a batch; the offsets topic has 50 partitions."""
_FOR_PEOPLE = (
    *("commit", "tombstone", "group", "group_tombstone", "group_record", "group_record_tombstone"),
    *("log_offset", "bad"),
)
_ATTEMPTS = 4


def settings_alone(options: Mapping[str, str]) -> SourceSettings:
    """Settings of a source that has no job.

    Args:
        options: `kafka.*` of librdkafka, and `kafka.token_provider`; `topics_include` and its like (patterns with
            commas between; an exclusion may be empty), as in `[source]`; `collapse` (`true` keeps of each task the
            newest record of a key); `interval_s`, from one batch of a stream to the next.

    Raises:
        ConfigError: An option is missing or wrong; the message names it.
    """
    properties = named(KAFKA, options)
    if not properties.get("bootstrap.servers"):
        raise ConfigError(
            'option kafka.bootstrap.servers is missing: .option("kafka.bootstrap.servers", "host:9092")'
        )
    kafka, source = _kafka(properties), _source(options)
    collapse = options.get("collapse", "true").lower()
    if collapse not in {"true", "false"}:
        raise ConfigError(f"option collapse is {collapse!r}: it must be true or false")
    patterns = {name: getattr(source, name) for name in _PATTERNS}
    return SourceSettings(
        properties=unresolved(Config(kafka=kafka, source=source)),
        root="",
        topics=(OFFSETS_TOPIC,),
        filters=Filters(**patterns, control_topics=ControlTopics(cluster="", acks="", commands="")),
        isolation=source.isolation,
        timeout_s=source.request_timeout_s,
        most_records=source.max_offsets_per_trigger,
        most_log_end_tasks=0,
        interval_s=_interval_s(options.get("interval_s", "1")),
        tolerated_ms=0,
        tombstones_kept_ms={},
        attempts=_ATTEMPTS,
        collapses=collapse == "true",
    )


def _kafka(properties: dict[str, str]) -> KafkaConfig:
    token_provider = properties.pop(TOKEN_PROVIDER, "")
    try:
        return KafkaConfig(token_provider=token_provider, properties=properties)
    except ValidationError as error:
        raise ConfigError(f"option {KAFKA}{TOKEN_PROVIDER}: {_why(error)}") from None


def _source(options: Mapping[str, str]) -> SourceConfig:
    given: dict[str, Any] = {}
    for name in (name for name in _PATTERNS if name in options):
        is_none = not options[name] and name.endswith("_exclude")
        given[name] = () if is_none else tuple(_BETWEEN_PATTERNS.split(options[name]))
        if "" in given[name]:
            raise ConfigError(f"option {name} is {options[name]!r}: an empty pattern matches nothing")
    try:
        return SourceConfig(**given)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise ConfigError(f"option {name} is {options[name]!r}: {_why(error)}") from None


def _why(error: ValidationError) -> str:
    return error.errors()[0]["msg"].removeprefix("Value error, ")


def _interval_s(given: str) -> float:
    try:
        interval_s = float(given)
    except ValueError:
        interval_s = 0.0
    if not 0 < interval_s < math.inf:
        raise ConfigError(f"option interval_s is {given!r}: it must be a number of seconds above 0")
    return interval_s


class _Alone:
    """Common base of the two readers."""

    def __init__(self, settings: SourceSettings) -> None:
        """Nothing is asked; tasks have a copy of this."""
        self._settings = settings

    @cached_property
    def _ask(self) -> EndsAsker:
        settings = self._settings
        return EndsAsker(
            lambda: admin_of(settings.properties),
            settings.topics,
            timeout_s=settings.timeout_s,
        )

    def _ends(self) -> dict[PartitionKey, End]:
        """Ends of every log.

        Raises:
            BrokerUnavailableError: A leader does not answer.
        """
        with within(3 * self._settings.timeout_s):
            answers = self._ask()
        for (topic, number), answer in answers.items():
            if isinstance(answer, str):
                raise BrokerUnavailableError(f"partition {number} of {topic} cannot be read: {answer}")
        return {key: answer for key, answer in answers.items() if isinstance(answer, End)}

    def _parts(self, spans: list[Span]) -> list[InputPartition]:
        wanted = tuple(span for span in spans if span.start < span.end)
        of_records = shares(wanted, tasks=_TASKS, records_a_task=RECORDS_A_TASK) if wanted else []
        with within(3 * self._settings.timeout_s):
            of_ends = ask.shares(self._settings.of_log_ends, tasks=_TASKS)
        return [*(Part(spans=tuple(one)) for one in of_records), *(Part(share=one) for one in of_ends)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one part; runs in a task.

        Raises:
            BrokerUnavailableError: A log could not be read up to the end of the batch.
        """
        part = cast("Part", partition)
        ends = {span.key: span.end for span in part.spans}
        for batch in rows_of_part(self._settings, part):
            told = batch.filter(pc.is_in(batch["row_kind"], value_set=pa.array(["read", "listing"])))
            for row in told.to_pylist():
                _require_read(row, ends.get((row["topic"], row["partition"])))
            yield batch.filter(pc.is_in(batch["row_kind"], value_set=pa.array(_FOR_PEOPLE)))


class AloneReader(_Alone, DataSourceReader):
    """Everything that is there now."""

    def partitions(self) -> list[InputPartition]:
        """Parts of all that is there."""
        return self._parts([_span(key, end.log_start, end.stable) for key, end in self._ends().items()])


class AloneStreamReader(_Alone, DataSourceStreamReader):
    """Existing records first, then new ones; an offset holds the position in each log."""

    def __init__(self, settings: SourceSettings) -> None:
        """The first batch is due now."""
        super().__init__(settings)
        # Spark asks a hundred times a second whether there is something new; the leaders are not to be.
        self._pace = Pace(settings.interval_s)
        self._newest: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """That of a query without a checkpoint."""
        return {}

    def latestOffset(self, start: object = None, limit: object = None) -> dict[str, Any]:  # noqa: ARG002 - Spark's signature
        """Return the log ends, asked for once per interval.

        Args:
            start: Given by Spark from 4.2 on.
            limit: Likewise.
        """
        if self._newest is None or self._pace.is_due():
            self._pace.begun()
            self._newest = self._latest()
        return self._newest

    def _latest(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (topic, number), end in sorted(self._ends().items()):
            found.setdefault(topic, {})[str(number)] = end.stable
        return found

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Parts of what lies between the two.

        Raises:
            BrokerUnavailableError: Records between them are gone, or the log ends before them; a new checkpoint reads
                what there is. A log that has grown past `start` again shows no sign that it was truncated.
        """
        ends = self._ends()
        starts = {key: one.log_start for key, one in ends.items()}
        spans = []
        for key, until in _flat(end).items():
            begin = _flat(start).get(key, starts.get(key, 0))
            topic, number = key
            # Up to the high watermark only: what is stable may be less for a while, with a new leader.
            if key in ends and begin > ends[key].high:
                raise BrokerUnavailableError(
                    f"partition {number} of {topic} ends at offset {ends[key].high}, before offset {begin} up to which "
                    "this query has read: it was truncated, restored or re-created; start it with a new checkpoint"
                )
            if begin < starts.get(key, 0):
                raise BrokerUnavailableError(
                    f"partition {number} of {topic} begins at offset {starts[key]}, after offset {begin} where this "
                    "query would resume: records were deleted unread; start it with a new checkpoint"
                )
            spans.append(_span(key, begin, until))
        return self._parts(spans)


def _require_read(row: Mapping[str, Any], end: int | None) -> None:
    """Check that a span was read to its end, or that the brokers listed their topics.

    Args:
        row: Of kind `read` or `listing`.
        end: Of the span; None for a list.

    Raises:
        BrokerUnavailableError: It was not.
    """
    error = row["error"]
    if error is None and end is not None and row["position"] < end:
        # A leader that is new may not know yet how far its log counts.
        error = f"its leader reports its end at offset {row['position']}, before offset {end} where this batch ends"
    if error is not None:
        log = "the list of topics" if end is None else f"partition {row['partition']} of {row['topic']}"
        raise BrokerUnavailableError(f"{log} cannot be read: {error}")


def _flat(offset: Mapping[str, Mapping[str, int]]) -> dict[PartitionKey, int]:
    return {(topic, int(number)): at for topic, logs in offset.items() for number, at in logs.items()}


def _span(key: PartitionKey, start: int, end: int) -> Span:
    return Span(topic=key[0], partition=key[1], start=start, end=end)
