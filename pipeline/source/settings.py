"""Source: its settings, as the options that Spark hands to the source's processes.

Options hold references to secrets (`env:`, `file:`), never the secrets: each process resolves them for itself.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pipeline.decode.filters import ControlTopics, Filters
from pipeline.kafka.sources.groups.settings import GroupsSettings
from pipeline.kafka.sources.log_offsets.settings import LogOffsetsSettings
from pipeline.kafka.sources.records.consumer import ReadSettings

KAFKA = "kafka."
"""What options of librdkafka begin with."""
_STORAGE, _REST = "storage.", "lagwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """What a source reads, and how."""

    properties: Mapping[str, str]
    """librdkafka properties; references to secrets are still unresolved."""
    storage_options: Mapping[str, str] = field(default_factory=dict)
    """Options for the store of the tables; references to secrets are still unresolved."""
    root: str
    """Folder of the tables, by which the source knows where reading goes on."""
    topics: tuple[str, ...]
    """Logs that are read: the offsets topic, and those of control messages."""
    filters: Filters
    isolation: str
    """Isolation level of the log ends."""
    timeout_s: float
    """For the brokers to answer."""
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
    """How often Spark begins a task before it gives the batch up."""
    cluster_id: str = ""
    """Kafka's id of the cluster."""
    query: str = ""
    """Name of the query, by which the driver knows the offsets that were chosen since it began."""
    most_group_requests: int = 0
    """Groups that coordinators are asked for at the same time; 0 where commits are read from the offsets topic."""
    group_max_age_s: float = 0
    """How old the answer about a group may be whose commits have been the same for as long."""
    collapses: bool = True
    """A task passes on only the newest of several records of a key; without it, all of them."""

    @property
    def choosing_s(self) -> float:
        """The time that choosing a batch gives the brokers."""
        return 3 * self.timeout_s

    @property
    def of_log_ends(self) -> LogOffsetsSettings:
        """How log ends are asked for."""
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
        """How coordinators are asked for groups."""
        return GroupsSettings(
            properties=dict(self.properties),
            groups_include=self.filters.groups_include,
            groups_exclude=self.filters.groups_exclude,
            request_timeout_s=self.timeout_s,
            at_once=self.most_group_requests,
        )

    @property
    def of_records(self) -> ReadSettings:
        """How records are read."""
        return ReadSettings(properties=self.properties, timeout_s=self.timeout_s)

    def to_options(self) -> dict[str, str]:
        """What `from_options` reads back; Spark redacts an option that is named like a secret."""
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
    """Whether the options are those of a job's source."""
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
