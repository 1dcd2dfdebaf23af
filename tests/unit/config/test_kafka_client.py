import pytest

from pipeline.config_model import Config, KafkaConfig
from pipeline.kafka_client import java_properties, librdkafka_properties, unresolved

_SERVERS = {"bootstrap.servers": "b:1"}
_DIRECTORY = {
    "config.providers": "directory",
    "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
}


def _config(properties: dict[str, str], java: dict[str, str] | None = None) -> Config:
    return Config(kafka=KafkaConfig(properties=_SERVERS | properties, java=java or {}))


def _java(properties: dict[str, str], java: dict[str, str] | None = None) -> dict[str, str]:
    found = java_properties(_config(properties, java))
    return {name: value for name, value in found.items() if name not in _SERVERS}


def test_shared_names_pass_and_librdkafkas_own_do_not() -> None:
    found = java_properties(
        _config({"security.protocol": "SSL", "socket.keepalive.enable": "true", "debug": "all"})
    )

    assert found == {"bootstrap.servers": "b:1", "security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    ],
)
@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_user_and_password_become_a_jaas_line(mechanism: str, module: str, name: str) -> None:
    found = _java({name: mechanism, "sasl.username": "me", "sasl.password": 'a"b\\c'})

    assert found == {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": rf'{module} required username="me" password="a\"b\\c";',
    }


def test_reference_in_a_jaas_line_is_left_to_the_java_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")

    found = _java({"sasl.mechanism": "PLAIN", "sasl.username": "me", "sasl.password": "env:KAFKA_PASSWORD"})

    assert 'password="${env:KAFKA_PASSWORD}";' in found["sasl.jaas.config"]
    assert found["config.providers"] == "env"
    assert found["config.providers.env.class"].endswith(".EnvVarConfigProvider")
    assert "hunter2" not in str(found)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "OAUTHBEARER"])
def test_mechanism_without_a_translation_has_no_jaas_line(mechanism: str) -> None:
    assert _java({"sasl.mechanism": mechanism, "sasl.username": "a", "sasl.password": "b"}) == {
        "sasl.mechanism": mechanism
    }


def test_pem_files_are_read_by_the_java_client() -> None:
    found = _java(
        {
            "ssl.ca.location": "/etc/tls/ca.pem",
            "ssl.certificate.location": "/etc/tls/cert.pem",
            "ssl.key.location": "/etc/keys/key.pem",
            "ssl.key.password": "file:/run/secrets/p",
        }
    )

    assert found == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "${directory:/etc/tls:ca.pem}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "${directory:/etc/tls:cert.pem}",
        "ssl.keystore.key": "${directory:/etc/keys:key.pem}",
        "ssl.key.password": "${directory:/run/secrets:p}",
        **_DIRECTORY,
    }


def test_pem_texts_and_pkcs12_keep_their_values() -> None:
    assert _java({"ssl.ca.pem": "CA"}) == {"ssl.truststore.certificates": "CA", "ssl.truststore.type": "PEM"}
    assert _java({"ssl.keystore.location": "/k.p12"}) == {
        "ssl.keystore.location": "/k.p12",
        "ssl.keystore.type": "PKCS12",
    }


def test_no_endpoint_identification_is_an_empty_text_in_java() -> None:
    assert _java({"ssl.endpoint.identification.algorithm": "none"}) == {
        "ssl.endpoint.identification.algorithm": ""
    }


def test_java_properties_win() -> None:
    found = _java(
        {"security.protocol": "SSL"}, java={"security.protocol": "SASL_SSL", "fetch.min.bytes": "2"}
    )

    assert found == {"security.protocol": "SASL_SSL", "fetch.min.bytes": "2"}


def test_own_config_providers_are_kept() -> None:
    found = _java(
        {"ssl.ca.location": "/ca.pem"},
        java={"config.providers": "vault", "config.providers.vault.class": "V", "x": "${vault:a}"},
    )

    assert found["config.providers"] == "vault,directory"
    assert found["config.providers.vault.class"] == "V"


def test_librdkafka_gets_secrets_and_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    config = _config({"sasl.password": "env:KAFKA_PASSWORD", "client.id": "a"})

    found = librdkafka_properties(config, **{"client.id": "b"})

    assert found == {**_SERVERS, "sasl.password": "hunter2", "client.id": "b"}
    assert unresolved(config) == {**_SERVERS, "sasl.password": "env:KAFKA_PASSWORD", "client.id": "a"}
