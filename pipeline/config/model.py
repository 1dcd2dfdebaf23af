"""The shape of the configuration: one model per TOML table, with defaults and bounds.

`conf/lagwise.toml` has every key with its default, unit and meaning; a test compares the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from assignor.errors import InvalidOptionError
from assignor.strategies.catalogue import CATALOGUE
from pipeline.config.values import (
    Count,
    DatabaseName,
    DryRun,
    Duration,
    Follow,
    Pattern,
    Patterns,
    Properties,
    Seconds,
    StrategyName,
    TopicByPrefix,
    TopicName,
    function_name,
    host_name,
    mechanism,
    origin,
    reference,
)
from pipeline.name_filter import NameFilter

Isolation = Literal["read_uncommitted", "read_committed"]
OffsetReset = Literal["earliest", "latest"]
OffsetsFrom = Literal["topic", "admin", "auto"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class ClusterConfig(_Section):
    """The cluster of the rows."""

    name: str = ""
    """Written into every row; empty means Kafka's cluster id."""


class KafkaConfig(_Section):
    """Access to the cluster. Not in `repr`: properties may hold secrets."""

    properties: Properties = Field(
        default={"bootstrap.servers": "localhost:9092", "client.id": "lagwise"}, repr=False
    )
    """Any librdkafka property."""
    token_provider: Annotated[str, AfterValidator(function_name)] = ""
    """The function that returns tokens for SASL/OAUTHBEARER, as `module:function`."""
    java: Properties = Field(default={}, repr=False)
    """A table of earlier versions, which read Kafka through Spark's Java client; without effect."""

    @field_validator("properties")
    @classmethod
    def _has_bootstrap_servers(cls, properties: dict[str, str]) -> dict[str, str]:
        if not properties.get("bootstrap.servers"):
            raise ValueError('"bootstrap.servers" is missing')
        return properties

    @model_validator(mode="after")
    def _token_provider_is_used(self) -> "KafkaConfig":
        given = self.properties
        if not self.token_provider:
            return self
        if mechanism(given) != "OAUTHBEARER" or not given.get("security.protocol", "").upper().startswith(
            "SASL_"
        ):
            raise ValueError(
                'token_provider needs "security.protocol" = "SASL_SSL" and "sasl.mechanism" = "OAUTHBEARER" in '
                "kafka.properties"
            )
        if given.get("sasl.oauthbearer.method", "default").lower() != "default":
            raise ValueError(
                'token_provider and "sasl.oauthbearer.method" both provide tokens; leave one of them out'
            )
        return self


class SourceConfig(_Section):
    """Data to read from the cluster."""

    topics_include: Patterns = (".*",)
    topics_exclude: Patterns = ("__.*",)
    groups_include: Patterns = (".*",)
    groups_exclude: Patterns = ("lagwise.*", "spark-kafka-.*")
    offsets: OffsetsFrom = "topic"
    """Source of commits and members: records of the offsets topic, answers of coordinators, or either."""
    group_requests: Count = 50
    """Number of groups that coordinators are asked about at the same time."""
    group_max_age_s: Duration = 120
    """Age up to which an answer about a group counts if the group has not committed for as long."""
    isolation: Isolation = "read_uncommitted"
    max_offsets_per_trigger: Count = 4_000_000
    request_timeout_s: Seconds = 10
    log_offset_splits: Annotated[int, Field(ge=0)] = 0
    """Number of tasks; 0 for as many as Spark has cores."""

    @property
    def asks_groups(self) -> bool:
        """Whether commits and members come from coordinators, and the offsets topic is not read.

        `run.assembly.as_found` replaces "auto" once it has asked the cluster.
        """
        return self.offsets == "admin"

    def wants_topic(self, topic: str) -> bool:
        """Whether log offsets of `topic` are kept: an include matches the whole name, and no exclude does."""
        return NameFilter(self.topics_include, self.topics_exclude).admits(topic)

    def wants_group(self, group_id: str) -> bool:
        """Whether rows of `group_id` are kept: an include matches the whole name, and no exclude does."""
        return NameFilter(self.groups_include, self.groups_exclude).admits(group_id)


class TablesConfig(_Section):
    """Location of the tables, and retention of replaced files."""

    root: Annotated[str, Field(min_length=1)] = ".lagwise/tables"
    checkpoint: str = ""
    retention_hours: Annotated[float, Field(gt=0, le=87_600)] = 2.0
    upkeep_every_batches: Count = 60
    give_up_after_s: Seconds = 3600
    shared: bool = False
    """Every host of a Spark cluster finds the same folder at `root`."""
    object_store: bool = False
    """`root` may be something other than a folder."""
    catalog: DatabaseName = ""
    """Database of Spark's catalog in which the job registers the tables; none if empty."""
    storage_options: Properties = Field(default={}, repr=False)
    """Options of readers and writers other than Spark, by the object store's names; may hold secrets."""

    @property
    def checkpoint_path(self) -> str:
        """Folder of the stream's checkpoint."""
        return self.checkpoint or f"{self.root.rstrip('/')}/_checkpoint"

    @property
    def query_path(self) -> str:
        """Folder of the query in it; folders next to it belong to earlier versions with other sources."""
        return f"{self.checkpoint_path.rstrip('/')}/batches"


class TriggerConfig(_Section):
    """Start of batches."""

    interval_s: Seconds = 30


class HistoryConfig(_Section):
    """Density and retention of `lag_history`."""

    interval_s: Seconds = 60
    max_gap_s: Seconds = 300
    keep_days: Annotated[int, Field(ge=1, le=36_500)] = 30

    @model_validator(mode="after")
    def _gap_covers_interval(self) -> "HistoryConfig":
        if self.max_gap_s < self.interval_s:
            raise ValueError(f"max_gap_s must be at least interval_s ({self.interval_s})")
        return self


class StartConfig(_Section):
    """Readiness after a start."""

    deadline_s: Seconds = 600


class StatusConfig(_Section):
    """Rules of the status."""

    allowed_lag: Annotated[int, Field(ge=0)] = 0


class RatesConfig(_Section):
    """Averages of rates."""

    half_life_s: Seconds = 120


class GuardsConfig(_Section):
    """Conditions under which a better target is not published."""

    min_improvement: Annotated[float, Field(ge=0, lt=1)] = 0.1
    confirmations: Count = 2
    settle_s: Duration = 120
    min_lag: Annotated[int, Field(ge=0)] = 0
    min_lag_s: Duration = 60
    cooldown_s: Duration = 120
    cooldown_max_s: Duration = 86_400
    moves_share: Annotated[float, Field(gt=0, le=1)] = 0.1
    partition_rest_s: Duration = 1200
    partition_moves_per_day: Count = 12
    pin: Patterns = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Settings of one group."""

    strategy: str
    dry_run: bool | Literal["approve"]
    """Whether plans are not published, ever or before an operator approves them."""
    auto_offset_reset: OffsetReset
    guards: GuardsConfig
    exclude: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    follow: Follow = "members"
    poke: bool = False


class GroupRule(_Section):
    """One `[[plan.groups]]`: settings of the groups that it matches; missing ones are those of `[plan]`."""

    pattern: Pattern
    strategy: StrategyName | None = None
    dry_run: DryRun | None = None
    auto_offset_reset: OffsetReset | None = None
    exclude: bool = False
    follow: Follow = "members"
    """What applies plans of KIP-848 groups: "members" cannot, so plans are advice; "broker": its assignor does."""
    poke: bool = False
    """Join the group for a moment after each plan, so that its broker reassigns it and takes the plan at once."""
    options: dict[str, Any] = Field(default={})
    guards: GuardsConfig = GuardsConfig()
    """Missing keys are those of `[plan.guards]`."""

    @model_validator(mode="after")
    def _poke_has_a_follower(self) -> "GroupRule":
        if self.poke and self.follow != "broker":
            raise ValueError('poke = true needs follow = "broker": set both, or remove poke')
        return self


class PlanConfig(_Section):
    """Plans: when, by which strategy, and for which groups."""

    interval_s: Seconds = 60
    strategy: StrategyName = "lag-sticky"
    dry_run: DryRun = True
    valid_for_s: Seconds = 600
    max_staleness_s: Seconds = 90
    auto_offset_reset: OffsetReset = "earliest"
    guards: GuardsConfig = GuardsConfig()
    groups: Annotated[tuple[GroupRule, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _options_fit_strategy(self) -> "PlanConfig":
        for place, rule in enumerate(self.groups):
            _check_options(place, rule, default=self.strategy)
        return self

    def for_group(self, group_id: str) -> GroupSettings:
        """Settings of `group_id`: those of the first rule whose pattern matches the whole name, or the defaults."""
        rule = next((r for r in self.groups if NameFilter((r.pattern,)).admits(group_id)), None)
        if rule is None:
            return GroupSettings(
                strategy=self.strategy,
                dry_run=self.dry_run,
                auto_offset_reset=self.auto_offset_reset,
                guards=self.guards,
            )
        return GroupSettings(
            strategy=rule.strategy or self.strategy,
            dry_run=self.dry_run if rule.dry_run is None else rule.dry_run,
            auto_offset_reset=rule.auto_offset_reset or self.auto_offset_reset,
            guards=self.guards_of(rule),
            exclude=rule.exclude,
            options=rule.options,
            follow=rule.follow,
            poke=rule.poke,
        )

    def guards_of(self, rule: GroupRule) -> GuardsConfig:
        """Guards of the groups that `rule` matches: its own, and for missing ones those of `[plan.guards]`."""
        return self.guards.model_copy(update=rule.guards.model_dump(exclude_unset=True))


def _check_options(place: int, rule: GroupRule, *, default: str) -> None:
    try:
        CATALOGUE[rule.strategy or default].check_options(rule.options)
    except InvalidOptionError as error:
        raise ValueError(f"groups[{place}].options: {error}") from None


class ControlConfig(_Section):
    """The topics between lagwise and consumers."""

    topic: TopicName = "lagwise.assignments"
    partitions: Count = 1
    acks_topic: TopicName = "lagwise.acks"
    commands_topic: TopicName = "lagwise.commands"
    max_record_bytes: Count = 1_000_000
    acks_topics: TopicByPrefix = Field(default={})
    """Acks topic by prefix of the group name; the longest prefix wins, and other groups use `acks_topic`."""

    @model_validator(mode="after")
    def _topics_are_different(self) -> "ControlConfig":
        named = {"topic": self.topic, "commands_topic": self.commands_topic, "acks_topic": self.acks_topic}
        named |= {f'acks_topics."{prefix}"': name for prefix, name in self.acks_topics.items()}
        for key, name in named.items():
            if name in {"__consumer_offsets", "__transaction_state", "__share_group_state"}:
                raise ValueError(f"{key}: {name} is an internal topic of Kafka; choose another")
            first = next(other for other in named if named[other] == name)
            if first != key and not first.startswith("acks_topic"):
                raise ValueError(f"{key}: {name} is {'control.' + first} as well; choose another")
        return self

    @property
    def every_acks_topic(self) -> tuple[str, ...]:
        """All topics of acknowledgements, `acks_topic` first."""
        return tuple(dict.fromkeys((self.acks_topic, *sorted(self.acks_topics.values()))))


MetricFamilies = Literal["seglo", "kafka_exporter"]
Granularity = Literal["partition", "topic", "group"]
MemberLabels = Literal["client", "full"]
Port = Annotated[int, Field(ge=0, le=65_535)]
Host = Annotated[str, Field(min_length=1)]
Origin = Annotated[str, AfterValidator(origin)]
HostName = Annotated[str, AfterValidator(host_name)]


class MetricsConfig(_Section):
    """Contents of `/metrics` of `lagwise serve`."""

    families: Annotated[tuple[MetricFamilies, ...], Field(strict=False)] = ("seglo", "kafka_exporter")
    granularity: Granularity = "partition"
    groups_include: Patterns = (".*",)
    groups_exclude: Patterns = ()
    topics_include: Patterns = (".*",)
    topics_exclude: Patterns = ()
    member_labels: MemberLabels = "client"
    max_series: Count = 200_000


class HealthConfig(_Section):
    """The driver's own HTTP endpoint."""

    host: Host = "127.0.0.1"
    port: Port = 0
    """0 for none."""


class ServeConfig(_Section):
    """Address and contents of `lagwise serve`."""

    host: Host = "127.0.0.1"
    port: Port = 8000
    token: Annotated[str, AfterValidator(reference)] = ""
    """Reference to the token for orders on the page; without it, the page takes none."""
    origins: Annotated[tuple[Origin, ...], Field(strict=False)] = ()
    """Origins of proxies through which browsers reach the page."""
    hosts: Annotated[tuple[HostName, ...], Field(strict=False)] = ()
    """Host names that it answers to, in addition to addresses and the names of this machine."""
    read_token: Annotated[str, AfterValidator(reference)] = ""
    """Reference to the token of readers; without it, anyone who reaches the port can read."""
    metrics: MetricsConfig = MetricsConfig()


class Config(_Section):
    """The whole configuration."""

    cluster: ClusterConfig = ClusterConfig()
    kafka: KafkaConfig = KafkaConfig()
    source: SourceConfig = SourceConfig()
    tables: TablesConfig = TablesConfig()
    trigger: TriggerConfig = TriggerConfig()
    history: HistoryConfig = HistoryConfig()
    start: StartConfig = StartConfig()
    status: StatusConfig = StatusConfig()
    rates: RatesConfig = RatesConfig()
    plan: PlanConfig = PlanConfig()
    control: ControlConfig = ControlConfig()
    health: HealthConfig = HealthConfig()
    serve: ServeConfig = ServeConfig()
    spark: Properties = Field(default={}, repr=False)
    """Properties of the Spark session; may hold secrets."""

    def serving_on(self, *, host: str | None = None, port: int | None = None) -> "Config":
        """The configuration with another address of `lagwise serve`."""
        given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
        return self.model_copy(update={"serve": self.serve.model_copy(update=given)})
