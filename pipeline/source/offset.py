"""Source: the offset of a batch, as Spark stores it: the span of each log to read, and the state it was chosen from.

It is JSON in Spark's checkpoint and in its progress. The tables stay the truth: a span begins at the position in
the newest stamp of `partition_lag`, not at the end of the previous offset.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pipeline.kafka.positions import Answer, End, Intake, PartitionKey, Span
from pipeline.tables.stamp import Stamp

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOffset:
    """Spans that one batch reads, and the state they were chosen from."""

    tick: int
    """Names the batch: when it was chosen, in ms since 1970, and later than that of any batch before it."""
    made_from: str
    """The state of the tables that it is made from (`state_of`)."""
    cluster_id: str = ""
    """Kafka's id of the cluster that it reads."""
    chosen_by: str = ""
    """Name of the query that has chosen it; each start of the driver has another one."""
    intake: Intake = field(default_factory=Intake)
    answers: Mapping[PartitionKey, Answer] = field(default_factory=dict)
    """The leaders' answer about every log."""
    failure: tuple[str, str] | None = None
    """Name and text of the `PipelineError` for which nothing could be chosen."""

    def to_json(self) -> Json:
        """Return the JSON for `from_json`, with one entry per log, which Spark shows."""
        read = self.intake
        spans = {span.key: span for span in read.spans}
        ends = {key: answer for key, answer in self.answers.items() if isinstance(answer, End)}
        return {
            "tick": self.tick,
            "made_from": self.made_from,
            "cluster_id": self.cluster_id,
            "chosen_by": self.chosen_by,
            "logs": _by_topic((key, _log(end, spans.get(key))) for key, end in ends.items()),
            "silent": _by_topic((key, why) for key, why in self.answers.items() if isinstance(why, str)),
            "reread": _by_topic(read.reread.items()),
            "beheaded": [list(key) for key in sorted(read.beheaded)],
            "impatient": [list(key) for key in read.impatient],
            "left": read.left,
            "failure": None if self.failure is None else list(self.failure),
        }


def from_json(given: Json) -> SourceOffset | None:
    """Parse the output of `to_json`; None for an offset of another source, from an earlier version."""
    if "made_from" not in given:
        return None
    logs, failure = _flat(given["logs"]), given["failure"]
    return SourceOffset(
        tick=given["tick"],
        made_from=given["made_from"],
        cluster_id=given.get("cluster_id", ""),
        chosen_by=given["chosen_by"],
        intake=Intake(
            spans=tuple(_span(key, log) for key, log in logs.items() if "from" in log),
            reread=_flat(given["reread"]),
            left=given["left"],
            beheaded=frozenset((topic, number) for topic, number in given["beheaded"]),
            impatient=tuple((topic, number) for topic, number in given["impatient"]),
        ),
        answers={key: _end(log) for key, log in logs.items()} | _flat(given["silent"]),
        failure=None if failure is None else (failure[0], failure[1]),
    )


def state_of(stamp: Stamp | None) -> str:
    """The state of the tables in a word: another one after each batch, and when all is to be read again."""
    if stamp is None:
        return "empty"
    return f"{stamp.at_ms}" if stamp.positions else f"{stamp.at_ms} read again"


def _log(end: End, span: Span | None) -> Json:
    log: Json = {"log_start": end.log_start, "stable": end.stable, "high": end.high}
    if span is None:
        return log
    return {"from": span.start, "to": span.end, "leader_epoch": span.leader_epoch, **log}


def _end(log: Json) -> End:
    return End(log_start=log["log_start"], stable=log["stable"], high=log["high"])


def _span(key: PartitionKey, log: Json) -> Span:
    topic, number = key
    return Span(
        topic=topic, partition=number, start=log["from"], end=log["to"], leader_epoch=log["leader_epoch"]
    )


def _by_topic(entries: Iterable[tuple[PartitionKey, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for (topic, number), value in sorted(entries, key=lambda entry: entry[0]):
        found.setdefault(topic, {})[str(number)] = value
    return found


def _flat(by_topic: Mapping[str, Mapping[str, Any]]) -> dict[PartitionKey, Any]:
    return {
        (topic, int(number)): value
        for topic, numbers in by_topic.items()
        for number, value in numbers.items()
    }
