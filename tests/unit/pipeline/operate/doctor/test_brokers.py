"""What the doctor makes of refusals, without a broker."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from pipeline.errors import AccessRefusedError, AuthenticationError
from pipeline.kafka.descriptions import Description, GroupMember
from pipeline.kafka.errors import error_of_call
from pipeline.kafka.poke_member import CLIENT_ID
from pipeline.operate.doctor import brokers
from pipeline.operate.doctor.evidence import read_group, read_stream
from pipeline.operate.doctor.finding import Figures, Finding
from tests.support.operate.patient import CONFIG, Patient, group, now


def asked(patient: Patient, monkeypatch: pytest.MonkeyPatch, error: Exception) -> Finding:
    def refuse(*_: Any) -> Iterator[Finding]:
        raise error
        yield

    monkeypatch.setattr(brokers, "_asked", refuse)
    stream = read_stream(patient.tables, CONFIG, is_configured=True, now=now())
    (found,) = brokers.ask(stream, None)
    return found


def test_wrong_password_is_not_called_a_missing_right(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = error_of_call("it fails", KafkaError(KafkaError._AUTHENTICATION, "SASL PLAIN: invalid"))
    right = error_of_call("it fails", KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    assert type(login) is AuthenticationError
    assert type(right) is AccessRefusedError
    assert str(asked(patient, monkeypatch, login).todo).startswith(
        "this is a failed login, not a missing right"
    )
    assert (
        asked(patient, monkeypatch, right).todo == "deploying-security.md lists the rights that lagwise needs"
    )


@pytest.mark.parametrize(
    ("kind", "described", "tool"),
    [
        ("share", "share", "tool: `kafka-share-groups.sh --describe --group billing`"),
        ("streams", "streams", "tool: `kafka-streams-groups.sh --describe --group billing`"),
        ("unknown", "Streams or share", "tools: `kafka-groups.sh --list`"),
    ],
)
def test_group_that_the_client_cannot_describe_is_not_called_deleted(
    patient: Patient, kind: str, described: str, tool: str
) -> None:
    patient.write("consumer_groups", group(group_type=kind))
    stream = read_stream(patient.tables, CONFIG, is_configured=True, now=now())
    figures = Figures(question="kafka", source="brokers")

    found = brokers._undescribed(
        KafkaException(KafkaError(KafkaError.GROUP_ID_NOT_FOUND)), read_group(stream, "billing"), figures
    )

    assert found.level == "unknown"
    assert found.cause.startswith(f"Kafka's client describes no {described} groups")
    assert found.todo == f"ask Kafka's own {tool}"


def test_consumer_with_the_client_id_of_the_poke_counts_as_a_member_and_the_poke_does_not(
    patient: Patient,
) -> None:
    patient.write("consumer_groups", group(group_type="consumer"))
    stream = read_stream(patient.tables, CONFIG, is_configured=True, now=now())
    described = Description(
        kind="CONSUMER",
        state="STABLE",
        members=tuple(
            GroupMember(
                member_id=name, client_id=client_id, assigned=frozenset(("t", one) for one in numbers)
            )
            for name, client_id, numbers in (("a", "c", [0]), ("b", CLIENT_ID, [1]), ("d", CLIENT_ID, []))
        ),
    )

    found = brokers._present(
        described, read_group(stream, "billing"), Figures(question="kafka", source="brokers")
    )

    assert (found.level, found.cause) == (
        "ok",
        "Kafka has the group: type consumer, state stable, 2 member(s)",
    )
