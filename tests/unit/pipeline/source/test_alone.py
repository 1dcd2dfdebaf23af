"""The source without a job: its options, how often it asks the leaders, and what it does where it cannot read."""

from collections.abc import Iterator, Mapping

import pytest

from pipeline.errors import BrokerUnavailableError, ConfigError
from pipeline.kafka.positions import Answer, End, PartitionKey, Span
from pipeline.kafka.sources.records.taking import Progress
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.source import alone, reading
from pipeline.source.alone import AloneReader, AloneStreamReader, settings_alone
from pipeline.source.pace import Pace
from pipeline.source.partitions import Part
from tests.support.brokers.inject import commit_record
from tests.support.brokers.raw_records import raw

BROKER = {"kafka.bootstrap.servers": "broker:9092"}
SPAN = Span(topic=OFFSETS_TOPIC, partition=3, start=5, end=9)
SILENT = "Local: Timed out"


def test_leaders_are_asked_once_in_an_interval_however_often_spark_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, now = [], {"s": 0.0}

    def ask() -> Mapping[PartitionKey, Answer]:
        asked.append(now["s"])
        return {(OFFSETS_TOPIC, 0): End(log_start=0, stable=len(asked), high=len(asked))}

    monkeypatch.setattr(alone, "Pace", lambda interval_s: Pace(interval_s, clock_s=lambda: now["s"]))
    monkeypatch.setattr(alone, "EndsAsker", lambda *_args, **_more: ask)
    reader = AloneStreamReader(settings_alone(BROKER | {"interval_s": "2"}))

    seen = []
    for now["s"] in (0.0, 0.01, 1.9, 2.0, 2.01):
        seen.append(reader.latestOffset()[OFFSETS_TOPIC]["0"])

    assert (seen, asked) == ([1, 1, 1, 2, 2], [0.0, 2.0])


@pytest.mark.parametrize(
    ("stable", "high", "why"),
    [
        (400, 400, f"partition 0 of {OFFSETS_TOPIC} ends at offset 400, before offset 1000"),
        (400, 1_000, None),
    ],
    ids=["a log that was truncated", "a leader that is new"],
)
def test_stream_whose_log_ends_before_its_position_fails_and_skips_nothing(
    stable: int, high: int, why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {(OFFSETS_TOPIC, 0): End(log_start=0, stable=stable, high=high)}
    monkeypatch.setattr(alone, "EndsAsker", lambda *_args, **_more: lambda: answers)
    monkeypatch.setattr(alone.ask, "shares", lambda *_args, **_more: [])
    reader = AloneStreamReader(settings_alone(BROKER))

    def parts() -> object:
        return reader.partitions({OFFSETS_TOPIC: {"0": 1_000}}, reader.latestOffset())

    if why is None:
        assert parts() == []
    else:
        with pytest.raises(BrokerUnavailableError, match=f"^{why} .* start it with a new checkpoint$"):
            parts()


@pytest.mark.parametrize("given", ["0", "-1", "soon", "nan", "inf"])
def test_interval_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="option interval_s"):
        settings_alone(BROKER | {"interval_s": given})


@pytest.mark.parametrize(
    ("option", "given", "why"),
    [
        (
            "topics_include",
            "orders,[",
            " is 'orders,[': must be a regular expression: unterminated character set",
        ),
        ("topics_include", "", " is '': an empty pattern matches nothing"),
        ("groups_exclude", "a,,b", " is 'a,,b': an empty pattern matches nothing"),
        ("kafka.token_provider", "tokens", ': must be "module:function"'),
        ("kafka.bootstrap.servers", "", " is missing"),
    ],
)
def test_wrong_option_is_refused_by_name(option: str, given: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_alone(BROKER | {option: given})

    assert str(refused.value).startswith(f"option {option}{why}")


@pytest.mark.parametrize(
    ("given", "patterns"),
    [
        ("a,b.*", ("a", "b.*")),
        ("order{1,2},pay[,;]x,(a,b|c)", ("order{1,2}", "pay[,;]x", "(a,b|c)")),
    ],
)
def test_comma_in_brackets_does_not_end_a_pattern(given: str, patterns: tuple[str, ...]) -> None:
    assert settings_alone(BROKER | {"topics_include": given}).filters.topics_include == patterns


def test_empty_exclusion_excludes_nothing() -> None:
    assert settings_alone(BROKER | {"topics_exclude": ""}).filters.topics_exclude == ()


def reads_as_far_as(position: int, error: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def consume(spans: list[Span], _settings: object) -> Iterator[object]:
        commit = commit_record("g", "t", 0, 40)
        yield raw((commit.key, commit.value))
        yield [Progress(one, position, 1, error=error).row() for one in spans]

    monkeypatch.setattr(reading, "consume", consume)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (SILENT, SILENT),
        (None, "its leader reports its end at offset 6, before offset 9 where this batch ends"),
    ],
    ids=["a silent leader", "a leader that is new"],
)
@pytest.mark.parametrize("reader", [AloneReader, AloneStreamReader])
def test_task_that_reads_short_fails_and_says_which_log_and_why(
    reader: type[AloneReader | AloneStreamReader],
    error: str | None,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads_as_far_as(6, error, monkeypatch)
    task = reader(settings_alone(BROKER)).read(Part(spans=(SPAN,)))

    with pytest.raises(BrokerUnavailableError) as failed:
        list(task)

    assert str(failed.value) == f"partition 3 of {OFFSETS_TOPIC} cannot be read: {why}"


def test_task_that_reads_to_the_end_hands_on_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    reads_as_far_as(SPAN.end, None, monkeypatch)

    batches = AloneReader(settings_alone(BROKER)).read(Part(spans=(SPAN,)))

    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [(row["row_kind"], row["committed_offset"]) for row in rows] == [("commit", 40)]
