"""What is wrong in the values is refused before anything is installed, and the reason names it."""

from copy import deepcopy
from typing import Any

import pytest

from tests.deploy.chart import LEAST, config_of, manifests, refusal

_PROPERTIES = ("config", "kafka", "properties")
_OPTIONS = ("config", "tables", "storage_options")
_SPARK = ("config", "spark")


def with_value(value: object, *path: str) -> dict[str, Any]:
    """The least values, and this one."""
    values = deepcopy(LEAST)
    at: dict[str, Any] = values
    for name in path[:-1]:
        at = at.setdefault(name, {})
    at[path[-1]] = value
    return values


@pytest.mark.parametrize(
    "path",
    [
        (*_PROPERTIES, "ssl.key.pem"),
        (*_PROPERTIES, "sasl.oauthbearer.client.secret"),
        (*_PROPERTIES, "sasl.oauthbearer.assertion.private.key.passphrase"),
        (*_OPTIONS, "AWS_SECRET_ACCESS_KEY"),
        (*_OPTIONS, "aws_session_token"),
        (*_OPTIONS, "AZURE_STORAGE_ACCOUNT_KEY"),
        (*_OPTIONS, "azure_storage_sas_key"),
        (*_OPTIONS, "azure_client_secret"),
        ("config", "serve", "read_token"),
        (*_SPARK, "spark.hadoop.javax.jdo.option.ConnectionPassword"),
        (*_SPARK, "spark.hadoop.fs.s3a.secret.key"),
        (*_SPARK, "spark.hadoop.fs.s3a.encryption.key"),
        (*_SPARK, "spark.hadoop.fs.azure.account.key.lag.dfs.core.windows.net"),
    ],
)
def test_secret_in_plain_text_is_refused_and_a_reference_is_not(path: tuple[str, ...]) -> None:
    assert path[-1] in refusal(with_value("hunter2", *path))

    assert '"env:OF_POD"' in config_of(manifests(with_value("env:OF_POD", *path)))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("-Xss4m -Djavax.net.ssl.trustStorePassword=hunter2", (*_SPARK, "spark.driver.extraJavaOptions")),
        ("http://me:hunter2@proxy:3128", (*_SPARK, "spark.hadoop.proxy")),
        ("http://me:hunter2@proxy:3128", (*_OPTIONS, "proxy_url")),
    ],
)
def test_secret_inside_a_value_is_refused(value: str, path: tuple[str, ...]) -> None:
    assert path[-1] in refusal(with_value(value, *path))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("-Xss4m -Djavax.net.ssl.trustStore=/etc/t.jks", (*_SPARK, "spark.driver.extraJavaOptions")),
        ("http://proxy:3128", (*_OPTIONS, "proxy_url")),
        ("https://login.example.com", (*_PROPERTIES, "sasl.oauthbearer.token.endpoint.url")),
        ("/etc/lagwise/client.key", (*_PROPERTIES, "ssl.key.location")),
        ("PLAIN", (*_PROPERTIES, "sasl.mechanism")),
        ("AKIA", (*_OPTIONS, "AWS_ACCESS_KEY_ID")),
        ("/var/run/token", (*_OPTIONS, "AWS_WEB_IDENTITY_TOKEN_FILE")),
        ("com.example.Tokens", (*_SPARK, "spark.hadoop.fs.azure.sas.token.provider.type")),
        ("", ("config", "serve", "read_token")),
    ],
)
def test_value_that_only_sounds_like_a_secret_is_taken(value: str, path: tuple[str, ...]) -> None:
    assert f'"{path[-1]}" = "{value}"' in config_of(manifests(with_value(value, *path)))


def test_without_brokers_nothing_is_rendered() -> None:
    assert "missing property 'bootstrap.servers'" in refusal({})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (True, ("standby",)),  # on a volume for one node
        ("yes", ("standby",)),
        ("once", ("takeOver",)),
        (2, ("replicas",)),
        ("ReadWriteSome", ("persistence", "accessMode")),
        ("20 GB", ("persistence", "size")),
        ("secret", (*_PROPERTIES, "sasl.password")),
        ("file://host/secret", (*_PROPERTIES, "sasl.password")),
        ("", (*_PROPERTIES, "bootstrap.servers")),
        ("127.0.0.1", ("config", "health", "host")),
        (0, ("config", "health", "port")),
        ("a-token-in-plain-text", ("config", "serve", "token")),
        ("/var/lib/lagwise", ("config", "tables", "root")),
        ("/data/../var", ("config", "tables", "root")),
        ("gs://bucket/lagwise", ("config", "tables", "root")),
        ("sha256:12", ("image", "digest")),
        (["Kafka_User"], ("existingSecrets",)),
        (["9092"], ("networkPolicy", "brokerPorts")),
        ([0], ("networkPolicy", "objectStorePorts")),
        (["everywhere"], ("networkPolicy", "egress")),
        ("sometimes", ("monitoring", "serviceMonitor", "interval")),
        ("Bearer", ("monitoring", "serviceMonitor", "authorization")),
        ("git.example.org", ("monitoring", "rules", "runbookUrl")),
        (1, ("terminationGracePeriodSeconds",)),
        ({"a": 1}, ("podLabels",)),
        ("4 GB", ("tmpSizeLimit",)),
        ("0Gi", ("tmpSizeLimit",)),
        (4096, ("tmpSizeLimit",)),
    ],
)
def test_wrong_value_is_refused_by_its_name(value: object, path: tuple[str, ...]) -> None:
    said = refusal(with_value(value, *path))

    assert "values don't meet the specifications of the schema" in said
    assert path[-1] in said or "/persistence/accessMode" in said
