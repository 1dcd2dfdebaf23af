"""Why a group, or a topic of it, is not in the tables."""

import pytest

from assignor.protocol.kafka.offsets import encode_group_metadata_key
from pipeline.config.model import Config
from pipeline.operate.doctor.evidence import offsets_partition_of
from tests.support.job.frames import at
from tests.support.operate.findings import told
from tests.support.operate.patient import OFFSETS_PARTITION, Patient, group, lag

_ABSENT = ("problem", "the tables do not list the group: lagwise has read no commit and no record of it")
_FILTERS = (
    "unknown",
    "whether source.groups_include or source.groups_exclude leaves the group out is unknown here",
)


def _config(**source: list[str]) -> Config:
    return Config.model_validate({"source": source})


def test_group_that_is_listed_has_nothing_to_explain(patient: Patient) -> None:
    assert told(patient.findings(), "listed") == []


def test_group_with_commits_only_is_listed_as_such(patient: Patient) -> None:
    patient.write("consumer_groups")

    found = next(one for one in patient.findings() if one.question == "listed")

    assert found.level == "ok"
    assert "its consumers use assign()" in found.cause


def test_group_of_unknown_type_is_listed_as_such(patient: Patient) -> None:
    patient.write("consumer_groups", group(group_type="unknown", state=None, generation=None))

    found = next(one for one in patient.findings() if one.question == "listed")

    assert "; it is a group of unknown type, members: " in found.cause


def test_unknown_name_is_compared_with_known_ones(patient: Patient) -> None:
    assert told(patient.findings(group_id="biling"), "listed") == [
        _ABSENT,
        _FILTERS,
        ("note", "the tables list groups with similar names: billing"),
    ]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (_config(groups_exclude=["x", "orders.*"]), "source.groups_exclude has 'orders.*'"),
        (_config(groups_include=["b.*", "c"]), "source.groups_include has only 'b.*', 'c'"),
    ],
)
def test_filter_that_leaves_the_group_out_is_named(patient: Patient, config: Config, why: str) -> None:
    found = told(patient.findings(group_id="orders-eu", config=config), "listed")

    assert found == [_ABSENT, ("problem", f"the configuration leaves the group out: {why}")]


def test_filters_that_take_the_group_are_no_cause(patient: Patient) -> None:
    assert told(patient.findings(group_id="orders", config=Config()), "listed") == [_ABSENT]


def test_configuration_that_is_not_the_streams_is_noticed(patient: Patient) -> None:
    ((level, cause),) = told(patient.findings(config=_config(groups_exclude=["bil.*"])), "listed")

    assert level == "note"
    assert "this configuration leaves the group out (source.groups_exclude has 'bil.*')" in cause


def test_filters_that_nobody_gave_are_not_taken_for_the_streams(patient: Patient) -> None:
    # The default of source.groups_exclude.
    patient.write("partition_lag", lag(0, group_id="lagwise-tool"))

    assert told(patient.findings(group_id="lagwise-tool"), "listed") == []
    assert told(patient.findings(group_id="lagwise-tool", config=Config()), "listed") != []


@pytest.mark.parametrize("group_id", ["billing", "orders"])
def test_part_of_the_offsets_topic_that_is_not_read_leaves_it_unknown(
    patient: Patient, group_id: str
) -> None:
    numbers = {"billing": OFFSETS_PARTITION, "orders": offsets_partition_of("orders", 4)}
    patient.write("partition_lag", lag(0), lag(1), behind=(numbers[group_id],), reason="1,000 records left")

    found = told(patient.findings(group_id=group_id), "listed")

    assert (
        "unknown",
        (
            f"partition {numbers[group_id]} of the offsets topic, which holds the group, is not read to its end: "
            "1,000 records left"
        ),
    ) in found


def test_other_part_of_the_offsets_topic_is_nothing_to_this_group(patient: Patient) -> None:
    patient.write(
        "partition_lag", lag(0), lag(1), behind=(OFFSETS_PARTITION - 1,), reason="1,000 records left"
    )

    assert told(patient.findings(), "listed") == []


@pytest.mark.parametrize(
    ("group_id", "partition"),
    # By a JVM; the hash code of the second is the least integer.
    [("hello", 22), ("polygenelubricants", 0), ("billing", 9), ("grüße-😀", 27)],
)
def test_partition_of_a_group_is_kafkas(group_id: str, partition: int) -> None:
    assert offsets_partition_of(group_id, 50) == partition


def test_records_of_the_group_in_quarantine_are_told(patient: Patient) -> None:
    rows = [
        {
            "offset": number,
            "kind": "group_metadata",
            "key": encode_group_metadata_key(name),
            "reason": "truncated",
        }
        for number, name in enumerate(("billing", "billing-eu"))
    ]
    patient.write("quarantine", *rows, {"offset": 9, "kind": "unknown_type", "reason": "odd", "key": b"\0"})

    assert told(patient.findings(), "listed") == [
        ("problem", "1 record(s) of the group could not be read, the newest: truncated")
    ]


def test_topic_that_is_excluded_and_topic_that_is_hidden_are_told_apart(patient: Patient) -> None:
    patient.write("topic_offsets")

    by_defaults = told(patient.findings(), "listed")
    excluded = told(patient.findings(config=_config(topics_exclude=["inv.*"])), "listed")

    assert [(level, cause.partition(",")[0]) for level, cause in (*by_defaults, *excluded)] == [
        ("problem", "the log offsets of topic invoices"),
        ("note", "no lag is kept for topic invoices"),
    ]


def test_brokers_that_do_not_answer_are_told_with_the_time_since(patient: Patient) -> None:
    patient.write(
        "topic_offsets",
        {"partition": 0, "error": "broker 2 does not answer", "observed_at": at(-500)},
        {"partition": 1},
    )

    assert told(patient.findings(), "listed") == [
        (
            "problem",
            "no broker has returned the log offsets of invoices-0 since 2023-11-14T22:05:00Z: broker 2 does not answer",
        )
    ]


def test_group_without_partitions_is_listed_and_says_so(patient: Patient) -> None:
    patient.write("partition_lag")
    patient.write("consumer_groups", group(members=[], state="Empty"))

    assert told(patient.findings(), "listed") == [
        ("note", "there is no lag to show: the group has neither a commit nor a partition")
    ]


def test_share_group_has_no_lag_here_although_it_has_one_in_kafka(patient: Patient) -> None:
    patient.write("partition_lag")
    patient.write("consumer_groups", group(group_type="share", state=None, members=None))

    (found,) = (one for one in patient.findings() if one.question == "listed" and one.level == "note")

    assert found.cause.startswith("lagwise shows no lag of share groups")
    assert found.todo == "ask Kafka's own tool: `kafka-share-groups.sh --describe --group billing`"
