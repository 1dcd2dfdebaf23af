"""Kafka's own answers: about a group, and about the rights that lagwise needs."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
)

from assignor.errors import DecodeError
from assignor.protocol.control import decode, decode_key
from pipeline import shell
from pipeline.config.model import Config
from pipeline.errors import (
    AccessRefusedError,
    AuthenticationError,
    BrokerUnavailableError,
    ConfigError,
    PipelineError,
)
from pipeline.kafka.asking import allow, can_be_asked, outcome_of
from pipeline.kafka.client import librdkafka_properties, unresolved
from pipeline.kafka.descriptions import Description, describe_groups
from pipeline.kafka.errors import RIGHTS, client_with_reason, explained
from pipeline.kafka.poke_member import is_poke
from pipeline.kafka.topic_configs import OFFSETS_TOPIC
from pipeline.operate.doctor.evidence import GroupEvidence, StreamEvidence
from pipeline.operate.doctor.facts import plan_of
from pipeline.operate.doctor.finding import Figures, Finding
from pipeline.operate.output import plain
from pipeline.operate.poll import READER, assign_all, messages

_ALONE = "what follows is from the tables alone"
_LOGIN = (
    "this is a failed login, not a missing right: check user, password, mechanism or certificate in kafka.properties, "
    "or what kafka.token_provider returns"
)
_BROKER_ASSIGNS = frozenset({"share", "streams"})
"""Types of groups that Kafka's own client cannot describe here: it reports that they do not exist."""


def ask(stream: StreamEvidence, group: GroupEvidence | None) -> Iterator[Finding]:
    """Ask the brokers about the group and the control topic or, without a group, about all topics of the job.

    An unreachable cluster is a finding, too.
    """
    figures = Figures(question="kafka", source="brokers", as_of=stream.now)
    if not stream.is_configured:
        yield replace(figures, as_of=None).finding(
            "note",
            f"no configuration is given, so Kafka was not asked, and every limit is a default: {_ALONE}",
            "name the stream's with --config FILE",
        )
        return
    try:
        yield from _asked(stream, group, figures)
    except AuthenticationError as error:
        yield figures.finding("problem", f"Kafka refuses to answer; {_ALONE}: {error}", _LOGIN)
    except AccessRefusedError as error:
        yield figures.finding("problem", f"Kafka refuses to answer; {_ALONE}: {error}", RIGHTS)
    except (BrokerUnavailableError, ConfigError) as error:
        yield figures.finding(
            "unknown", f"Kafka cannot be asked; {_ALONE}: {error}", "check that the brokers answer"
        )


def _asked(stream: StreamEvidence, group: GroupEvidence | None, figures: Figures) -> Iterator[Finding]:
    config = stream.config
    properties = librdkafka_properties(config, **{"group.id": "lagwise-doctor"}, **READER)
    consumer, reason = client_with_reason(Consumer, properties)
    with closing(consumer):
        with explained("the cluster cannot be used", reason):
            cluster_id = str(
                consumer.list_topics(config.control.topic, timeout=_timeout_s(config)).cluster_id
            )
        yield from _cluster(stream, cluster_id, figures)
        if group is None:
            control = config.control
            for topic in (
                *(() if config.source.asks_groups else (OFFSETS_TOPIC,)),
                *control.every_acks_topic,
                control.commands_topic,
                control.topic,
            ):
                yield _readable(consumer, topic, config, figures.about(topic))
        else:
            yield _described(config, group, figures.about(plain(group.group_id)))
            yield _published(consumer, config, group, cluster_id, figures.about(config.control.topic))


def _timeout_s(config: Config) -> float:
    return config.source.request_timeout_s


def _cluster(stream: StreamEvidence, cluster_id: str, figures: Figures) -> Iterator[Finding]:
    written = stream.stamp.cluster_id if stream.stamp else ""
    if written and written != cluster_id:
        yield figures.about("kafka.properties").finding(
            "problem",
            f"the tables belong to Kafka cluster {plain(written)}, but this configuration leads to {plain(cluster_id)}",
            "name the configuration of the stream that writes these tables, or its tables.root",
        )


def _readable(consumer: Consumer, topic: str, config: Config, figures: Figures) -> Finding:
    try:
        for _ in _messages(consumer, topic, config, offset=OFFSET_END):
            break
    except (AccessRefusedError, BrokerUnavailableError) as error:
        if topic == OFFSETS_TOPIC and config.source.offsets == "auto":
            return figures.finding(
                "note", f'{error}; with source.offsets = "auto" lagwise asks coordinators instead'
            )
        return _unreadable(error, topic, figures)
    return figures.finding("ok", f"topic {topic} can be read")


def _unreadable(error: PipelineError, topic: str, figures: Figures) -> Finding:
    is_refused = isinstance(error, AccessRefusedError)
    todo = "start the stream, which creates its topics, or check the brokers"
    return figures.finding("problem", str(error), allow(f"Read on topic {topic}") if is_refused else todo)


def _messages(consumer: Consumer, topic: str, config: Config, *, offset: int) -> Iterator[Message]:
    """Records of the topic from this offset to its present end.

    Raises:
        AccessRefusedError: This user may not read it.
        BrokerUnavailableError: It does not exist, or no broker answers.
    """
    with explained(f"topic {topic} cannot be read"):
        partitions = assign_all(consumer, topic, offset=offset, timeout_s=_timeout_s(config))
    yield from messages(
        consumer, topic=topic, partitions=partitions, follow=False, silence_s=_timeout_s(config)
    )


def _described(config: Config, group: GroupEvidence, figures: Figures) -> Finding:
    """Whether Kafka has the group, as this user may see it."""
    if not can_be_asked(group.group_id):
        return figures.finding("unknown", "Kafka's client cannot ask about a group of this name")
    (found,) = describe_groups(unresolved(config), [group.group_id], timeout_s=_timeout_s(config)).values()
    if isinstance(found, KafkaException):
        return _undescribed(found, group, figures)
    if found.state == "DEAD":
        return _gone(group, figures)
    return _present(found, group, figures)


def _undescribed(failure: KafkaException, group: GroupEvidence, figures: Figures) -> Finding:
    error = failure.args[0]
    if error.code() == KafkaError.GROUP_ID_NOT_FOUND:
        return _gone(group, figures)
    if outcome_of(failure) == "refused":
        return figures.finding(
            "unknown",
            "this user may not describe the group, so whether Kafka has it is unknown; lagwise lists it nevertheless",
            allow("Describe on the group"),
        )
    return figures.finding("unknown", f"no coordinator has described the group: {error.str()}")


def _gone(group: GroupEvidence, figures: Figures) -> Finding:
    kind = group.group["group_type"] if group.group else None
    if kind in _BROKER_ASSIGNS:
        return figures.finding(
            "unknown",
            f"Kafka's client describes no {kind} groups, so whether Kafka still has it is unknown; lagwise lists it "
            "nevertheless",
            f"ask Kafka's own tool: `kafka-{kind}-groups.sh --describe --group {shell.quoted(group.group_id)}`",
        )
    if kind == "unknown":
        # Where coordinators are the source, the tables name the types of no other groups.
        return figures.finding(
            "unknown",
            "Kafka's client describes no Streams or share groups, so whether Kafka still has it is unknown; lagwise "
            "lists it nevertheless",
            "ask Kafka's own tools: `kafka-groups.sh --list`",
        )
    if group.is_listed:
        return figures.finding(
            "note",
            "Kafka has no consumer group of this name: it was deleted, or has expired",
            "nothing: the stream drops it when it reads its deletion, or within a day",
        )
    return figures.finding(
        "problem",
        "Kafka has no consumer group of this name",
        "check the name and the cluster; share groups are not consumer groups",
    )


def _present(found: Description, group: GroupEvidence, figures: Figures) -> Finding:
    kind = found.kind.lower()
    state = found.state.lower().replace("_", " ")
    n_members = sum(not is_poke(one.client_id, reads_nothing=not one.assigned) for one in found.members)
    text = f"Kafka has the group: type {kind}, state {state}, {n_members} member(s)"
    if group.group is not None and group.members and len(group.members) != n_members:
        return figures.finding(
            "note",
            f"{text}; the tables have {len(group.members)}",
            "look again after the next batch: it is being rebalanced, or the tables are old",
        )
    return figures.finding("ok", text)


def _published(
    consumer: Consumer, config: Config, group: GroupEvidence, cluster_id: str, figures: Figures
) -> Finding:
    """Whether the control topic can be read, and holds what the tables call published."""
    topic, wanted = config.control.topic, (config.cluster.name or cluster_id, group.group_id)
    value: bytes | None = None
    try:
        for message in _messages(consumer, topic, config, offset=OFFSET_BEGINNING):
            if _key_of(message) == wanted:
                value = message.value()
    except (AccessRefusedError, BrokerUnavailableError) as error:
        return _unreadable(error, topic, figures)
    return _compared(value, group, figures)


def _key_of(message: Message) -> tuple[str, str] | None:
    try:
        return decode_key(message.key() or b"")
    except DecodeError:
        return None


def _compared(value: bytes | None, group: GroupEvidence, figures: Figures) -> Finding:
    try:
        epoch = None if value is None else decode(value).epoch
    except DecodeError as error:
        return figures.finding(
            "problem",
            f"the group's record on the control topic is damaged: {error}",
            "find out who writes there",
        )
    wanted = _open_epoch(group)
    if wanted is not None and (epoch is None or epoch < wanted):
        return figures.finding(
            "problem",
            f"plan epoch {wanted} is not on the control topic, where the newest epoch of the group is {plain(epoch)}",
            "see the stream's log: a plan that it could not publish is sent later, while it is valid",
        )
    holds = "no plan" if epoch is None else f"plan epoch {epoch}"
    return figures.finding("ok", f"the control topic can be read, and holds {holds} of the group")


def _open_epoch(group: GroupEvidence) -> int | None:
    """Epoch of the plan that the control topic must hold, according to the tables; None if it need not hold one."""
    plan = plan_of(group)
    return plan.epoch if plan is not None and plan.status == "open" and not plan.is_dropped else None
