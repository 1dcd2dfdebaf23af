"""Source: its settings, as the options that Spark hands to the source's processes.

Options hold references to secrets (`env:`, `file:`), never the secrets: each process resolves them for itself.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pipeline.decode.filters import ControlTopics, Filters
from pipeline.kafka.sources.groups.settings import GroupsSettings
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings
from pipeline.kafka.sources.records.settings import ReadSettings

KAFKA = "kafka."
"""Prefix of librdkafka options."""
_STORAGE, _REST = "storage.", "lagwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """Settings of a source."""

    properties: Mapping[str, str]
    """librdkafka properties; references to secrets are still unresolved."""
    storage_options: Mapping[str, str] = field(default_factory=dict)
    """Options for the store of the tables; references to secrets are still unresolved."""
    root: str
    """Folder of the tables, from which the source takes its start positions."""
    topics: tuple[str, ...]
    """Logs that are read: the offsets topic, and those of control messages."""
    filters: Filters
    isolation: str
    """Isolation level of the log ends."""
    timeout_s: float
    """Time limit for an answer of the brokers."""
    most_records: int
    """Records that a batch reads at most."""
    most_log_end_tasks: int
    """Tasks that ask for log ends; 0 for as many as Spark runs at once."""
    interval_s: float
    """Time from one batch to the next."""
    tolerated_ms: int
    """See `positions.Limits`."""
    tombstones_kept_ms: Mapping[str, int | None]
    """As known when the query starts; see `positions.Limits`."""
    attempts: int
    """Attempts per task before Spark fails the batch."""
    cluster_id: str = ""
    """Kafka's id of the cluster."""
    query: str = ""
    """Name of the query, by which the driver knows the offsets that were chosen since it began."""
    most_group_requests: int = 0
    """Groups per concurrent request to coordinators; 0 if commits come from the offsets topic."""
    group_max_age_s: float = 0
    """Maximum age of the answer about a group whose commits have not changed for as long."""
    collapses: bool = True
    """A task passes on only the newest of several records of a key; without it, all of them."""

    @property
    def choosing_s(self) -> float:
        """The time that choosing a batch gives the brokers."""
        return 3 * self.timeout_s

    @property
    def of_log_ends(self) -> LogOffsetsSettings:
        """Settings of requests for log ends."""
        return LogOffsetsSettings(
            properties=dict(self.properties),
            topics_include=self.filters.topics_include,
            topics_exclude=self.filters.topics_exclude,
            isolation=self.isolation,
            request_timeout_s=self.timeout_s,
            splits=self.most_log_end_tasks,
        )

    @property
    def of_groups(self) -> GroupsSettings:
        """Settings of requests to coordinators."""
        return GroupsSettings(
            properties=dict(self.properties),
            groups_include=self.filters.groups_include,
            groups_exclude=self.filters.groups_exclude,
            request_timeout_s=self.timeout_s,
            at_once=self.most_group_requests,
        )

    @property
    def of_records(self) -> ReadSettings:
        """Settings of record reads."""
        return ReadSettings(
            properties=self.properties,
            timeout_s=self.timeout_s,
            passes_over=frozenset(self.filters.control_topics.every_acks),
        )

    def to_options(self) -> dict[str, str]:
        """Return options for `from_options`; Spark redacts an option with the name of a secret."""
        rest = {
            name: value
            for name, value in asdict(self).items()
            if name not in {"properties", "storage_options"}
        }
        return {
            **{KAFKA + name: value for name, value in self.properties.items()},
            **{_STORAGE + name: value for name, value in self.storage_options.items()},
            _REST: json.dumps(rest),
        }


def is_job(options: Mapping[str, str]) -> bool:
    """Return whether the options belong to a job's source."""
    return _REST in options


def from_options(options: Mapping[str, str]) -> SourceSettings:
    """The settings that `to_options` wrote."""
    rest = json.loads(options[_REST])
    filters = rest.pop("filters")
    patterns = {name: tuple(value) for name, value in filters.items() if isinstance(value, list)}
    return SourceSettings(
        **rest
        | {
            "properties": named(KAFKA, options),
            "storage_options": named(_STORAGE, options),
            "topics": tuple(rest["topics"]),
            "filters": Filters(
                **patterns,
                control_topics=ControlTopics(**filters["control_topics"]),
                asks_groups=filters["asks_groups"],
            ),
        }
    )


def named(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options that begin with the prefix, without it."""
    return {name[len(prefix) :]: value for name, value in options.items() if name.startswith(prefix)}
