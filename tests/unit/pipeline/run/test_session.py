"""Which properties a session gets; sessions are started in tests/spark and tests/integration."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkRuntimeError

from pipeline.errors import MissingDependencyError
from pipeline.run.spark import session
from pipeline.run.spark.session import (
    build_session,
    has_ended,
    is_driver_of_yarn,
    master_of,
    properties,
    start_session,
)


def test_what_was_given_to_spark_submit_wins_over_a_default() -> None:
    given = {"spark.ui.enabled": "true", "spark.master": "yarn"}

    told = properties({}, given)

    assert "spark.ui.enabled" not in told
    assert "spark.master" not in told
    assert properties({}, {})["spark.ui.enabled"] == "false"


def test_configuration_wins_over_both() -> None:
    told = properties({"spark.ui.enabled": "maybe"}, {"spark.ui.enabled": "true"})

    assert told["spark.ui.enabled"] == "maybe"


def test_jvm_logs_by_settings_that_exist() -> None:
    assert session.LOG_SETTINGS.is_file()


class _LaunchedError(Exception):
    pass


def _launched_with(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The properties that the JVM of a session with these settings gets as arguments."""
    given: dict[str, str] = {}

    def launch(conf: Any) -> None:
        given.update(conf.getAll())
        raise _LaunchedError

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_HOME", os.environ.get("SPARK_HOME", ""))
    monkeypatch.setattr(session, "SparkContext", SimpleNamespace(_ensure_initialized=launch))
    with pytest.raises(_LaunchedError):
        start_session(settings)
    return given


def test_arguments_of_the_jvm_have_its_own_options_and_nothing_that_may_be_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OF_TEST", "4g")

    shown = _launched_with(
        {
            "spark.driver.memory": "env:OF_TEST",
            "spark.hadoop.fs.s3a.endpoint": "http://store",
            "spark.hadoop.fs.s3a.secret.key": "in plain text",
            "spark.hadoop.metastore.login": "env:OF_TEST",
        },
        monkeypatch,
    )

    assert shown["spark.driver.memory"] == "4g"
    assert shown["spark.hadoop.fs.s3a.endpoint"] == "http://store"
    assert shown.keys().isdisjoint({"spark.hadoop.fs.s3a.secret.key", "spark.hadoop.metastore.login"})


def test_host_with_another_spark_starts_the_java_side_of_the_spark_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3.5")

    _launched_with({}, monkeypatch)

    assert os.environ["SPARK_HOME"] == str(Path(pyspark.__file__).parent)


def test_java_that_cannot_start_spark_is_one_line_with_what_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(**_: Any) -> None:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_HOME", "")
    monkeypatch.setattr(session, "SparkContext", SimpleNamespace(_ensure_initialized=launch))

    with pytest.raises(MissingDependencyError, match=r"Java could not start Spark, .* spark\.driver\.memory"):
        start_session({"spark.driver.memory": "lots"})


def test_what_the_job_relies_on_cannot_be_changed() -> None:
    wrong = {"spark.sql.session.timeZone": "Europe/Berlin"}

    assert properties(wrong, wrong)["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.parametrize(
    ("given", "memory"),
    [
        ({"spark.master": "spark://s:7077"}, "1536m"),
        ({"spark.master": "yarn", "spark.executor.cores": "4"}, "6144m"),
        ({"spark.master": "yarn", "spark.executor.memoryOverhead": "1g"}, None),
        ({"spark.master": "yarn", "spark.executor.memoryOverheadFactor": "0.4"}, None),
        ({"spark.master": "k8s://s", "spark.kubernetes.memoryOverheadFactor": "0.4"}, None),
        ({"spark.master": "local[8]"}, None),
        ({}, None),
    ],
)
def test_executors_of_a_cluster_have_memory_for_the_python_of_each_core(
    given: dict[str, str], memory: str | None
) -> None:
    assert properties({}, given).get("spark.executor.memoryOverhead") == memory


def test_workers_import_ahead_only_where_the_code_is_before_it_was_shipped() -> None:
    told = properties({}, {"spark.master": "spark://s:7077"})

    assert "spark.python.daemon.module" not in told
    assert not [value for value in told.values() if "SharedArchiveFile" in value]


def test_master_is_the_one_of_the_configuration_then_of_spark_submit_then_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert master_of({}) == "local[*,4]"
    monkeypatch.setattr(session, "submitted", lambda: {"spark.master": "yarn"})

    assert master_of({}) == "yarn"
    assert master_of({"spark.master": "local[2]"}) == "local[2]"


@pytest.mark.parametrize("version", ["3.5", "4.3", "5.0"])
def test_spark_that_lagwise_was_not_tried_on_is_refused_before_anything_starts(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_SPARK", version)
    monkeypatch.setattr(session.pyspark, "__version__", f"{version}.1")
    # A session that was begun would end the test.
    monkeypatch.setattr(session, "SparkSession", None)

    with pytest.raises(MissingDependencyError) as refused:
        build_session({})

    said = str(refused.value)
    assert f"this is Spark {version}.1, and lagwise runs on 4.0, 4.1, 4.2: use a cluster" in said
    assert f"install `pyspark=={_pinned()}`" in said


def _pinned() -> str:
    pins = Path("deploy/constraints.txt").read_text(encoding="utf-8").splitlines()
    (version,) = (pin.removeprefix("pyspark==") for pin in pins if pin.startswith("pyspark=="))
    return version


def _session(is_stopped: Any) -> Any:
    context = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=is_stopped))
    return SimpleNamespace(sparkContext=SimpleNamespace(_jsc=context))


def _gone() -> bool:
    raise Py4JNetworkError("nobody answers")


@pytest.mark.parametrize(
    ("master", "mode", "expected"),
    [
        ("yarn", "cluster", True),
        ("yarn", "client", False),
        ("yarn", None, False),
        ("k8s://s", "cluster", False),
    ],
)
def test_driver_of_yarn_is_one_in_a_container(
    master: str, mode: str | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"spark.master": master} | ({"spark.submit.deployMode": mode} if mode else {})
    monkeypatch.setattr(session, "submitted", lambda: given)

    assert is_driver_of_yarn() is expected


def test_spark_has_ended_when_it_says_so_or_nobody_is_there_to_say_it() -> None:
    assert has_ended(_session(lambda: True))
    assert has_ended(_session(_gone))
    assert not has_ended(_session(lambda: False))
