"""The whole conformance kit, with its kills and sleeps: every follower of ours, and every one that does wrong."""

from pathlib import Path

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.conformance.assignor import RULES as ASSIGNOR
from tests.conformance.followers.java_command import COOPERATIVE, EAGER, java_command
from tests.conformance.hand_over import RULES as HAND_OVER
from tests.support.conformance.conformance_runs import only, python_follower, quick, unkept
from tests.support.java.java_jar import java_jar

AWAITS = "Give nothing away until everybody"
COMMITS = "the new one commits it again"
FORGED = "A release that no commit of the old owner bears out moves nothing."


def test_follower_of_confluent_kafka_keeps_every_rule(broker: EmbeddedBroker, tmp_path: Path) -> None:
    assert unkept(broker.bootstrap_servers, tmp_path, python_follower("confluent"), HAND_OVER) == {}


@pytest.mark.parametrize(
    "words",
    [("kafka_python", "eager"), ("kafka_python", "cooperative"), ("aiokafka_client",)],
    ids="-".join,
)
def test_plug_in_keeps_every_rule(broker: EmbeddedBroker, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert unkept(broker.bootstrap_servers, tmp_path, python_follower(*words), ASSIGNOR) == {}


@pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])
def test_jar_for_java_keeps_every_rule(broker: EmbeddedBroker, tmp_path: Path, assignor: str) -> None:
    assert unkept(broker.bootstrap_servers, tmp_path, java_command(java_jar(), assignor), ASSIGNOR) == {}


@pytest.mark.parametrize(
    ("what", "part"),
    [
        ("impatient", AWAITS),
        ("takes-unproven", COMMITS),
        ("gives-uncommitted", COMMITS),
        ("believes-records", FORGED),
    ],
)
def test_hand_over_that_is_not_safe_is_found_out(
    broker: EmbeddedBroker, tmp_path: Path, what: str, part: str
) -> None:
    rules = only(HAND_OVER, AWAITS, COMMITS, FORGED)

    found = unkept(broker.bootstrap_servers, tmp_path, python_follower("confluent", what), rules)

    assert [sentence for sentence in found if part in sentence]


def test_member_that_does_not_say_what_it_still_reads_makes_a_second_owner(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    command = python_follower("kafka_python", "cooperative", "silent")

    found = unkept(broker.bootstrap_servers, tmp_path, command, quick(ASSIGNOR))

    assert "No partition has two owners." in found
