from pathlib import Path

import pytest

from pipeline.config.secret_values import masked, resolve
from pipeline.errors import ConfigError


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.pem",
        "AWS_SECRET_ACCESS_KEY",
        "x.token",
        "sasl.jaas.config",
        "SslKeyPassword",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    ],
)
def test_plain_secret_is_masked(name: str) -> None:
    assert masked({name: "hunter2"}) == {name: "****"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.driver.extraJavaOptions", "'-Djavax.net.ssl.trustStorePassword=two hunters'"),
        ("spark.executor.defaultJavaOptions", "-Dmy.client_secret=a -Dproxy=http://me:hunter2@proxy:3128"),
        ("proxy_url", "http://me:hunter2@proxy:3128"),
        ("sasl.oauthbearer.token.endpoint.url", "https://me:hunter2@login.example.com/token"),
    ],
)
def test_secret_inside_a_value_is_masked(name: str, value: str) -> None:
    assert masked({name: value}) == {name: "****"}


def test_java_options_without_a_secret_are_shown_beside_one() -> None:
    name = "spark.driver.extraJavaOptions"

    shown = masked({name: "-Xmx2g -Djavax.net.ssl.trustStorePassword=hunter2 -Da=1"})

    assert shown == {name: "-Xmx2g -Djavax.net.ssl.trustStorePassword=**** -Da=1"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bootstrap.servers", "b:1"),
        ("spark.driver.extraJavaOptions", "-Djavax.net.ssl.trustStore=/etc/t.jks -XX:+UseZGC"),
        ("proxy_url", "http://proxy:3128/a@b"),
        ("spark.hadoop.fs.defaultFS", "abfss://container@account.dfs.core.windows.net/x"),
        ("sasl.password", "env:KAFKA_PASSWORD"),
        ("sasl.password", "file:/run/secrets/p"),
        ("ssl.key.location", "/etc/key.pem"),
        ("sasl.password", ""),
        ("sasl.oauthbearer.token.endpoint.url", "https://login.example.com/token"),
        ("sasl.oauthbearer.client.credentials.client.id", "lagwise"),
        ("sasl.oauthbearer.assertion.private.key.file", "/etc/key.pem"),
    ],
)
def test_what_is_no_secret_is_shown(name: str, value: str) -> None:
    assert masked({name: value}) == {name: value}


def test_url_with_scheme_file_is_no_reference() -> None:
    assert resolve({"url": "file:///token"}) == {"url": "file:///token"}
    assert masked({"token.url": "file:///token"}) == {"token.url": "****"}


def test_reference_becomes_the_text_it_stands_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from file \n", encoding="utf-8")
    monkeypatch.setenv("SOME_SECRET", "from env")

    found = resolve({"a": "env:SOME_SECRET", "b": f"file:{secret}", "c": "plain"})

    assert found == {"a": "from env", "b": "from file ", "c": "plain"}


def test_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH", raising=False)

    with pytest.raises(ConfigError, match=r"^sasl\.password: environment variable NO_SUCH is not set"):
        resolve({"sasl.password": "env:NO_SUCH"})


@pytest.mark.parametrize("content", [None, b"\xff"], ids=["missing", "not text"])
def test_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigError, match=rf"^sasl\.password: the secret's file {file} cannot be read: "):
        resolve({"sasl.password": f"file:{file}"})
