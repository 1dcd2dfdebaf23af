"""Which command deploy/submit.sh starts; that Spark takes it so is tested in tests/integration/test_submit_script.py."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.errors import ConfigError
from pipeline.operate.submit import Brought, submission
from pipeline.run.spark.session import DRIVER_JVM

BROUGHT = Brought(
    code=Path("/cache/lagwise.zip"),
    jars=(Path("/cache/a.jar"), Path("/cache/b.jar")),
    shared_classes=("-XX:SharedArchiveFile=/cache/x.jsa",),
)
LOG = "-Dlog4j2.configurationFile="
CLUSTER = {"SUBMIT_ARGS": "--master yarn --deploy-mode=cluster"}


class Started:
    """A command, taken apart.

    Attributes:
        words: All of it.
        conf: Properties by --conf; the last of each counts.
    """

    def __init__(self, *arguments: str, **variables: str) -> None:
        # Where no file of defaults is.
        environment = {"SPARK_CONF_DIR": "/nowhere", **variables}
        self.is_cluster, self.python, self.words = submission(
            arguments or ("--config", "my.toml"), environment, BROUGHT
        )
        self._pairs = list(pairwise(self.words))
        self.conf = dict(value.split("=", 1) for option, value in self._pairs if option == "--conf")

    def last(self, option: str) -> str | None:
        """What Spark takes for an option."""
        found = [value for name, value in self._pairs if name == option]
        return found[-1] if found else None

    @property
    def of_job(self) -> tuple[str, ...]:
        """What comes after the file that is submitted."""
        (at,) = (n for n, word in enumerate(self.words) if word.endswith("/pipeline/run/main.py"))
        return self.words[at + 1 :]


def test_driver_of_this_machine_takes_the_archive_of_classes_with_the_jars_it_is_of() -> None:
    started = Started()

    assert not started.is_cluster
    assert started.conf["spark.driver.extraClassPath"] == "/cache/a.jar:/cache/b.jar"
    assert started.conf["spark.driver.defaultJavaOptions"].endswith(BROUGHT.shared_classes[0])
    assert started.words[0] == str(Path(sys.executable).with_name("spark-submit"))
    assert started.of_job == ("--config", "my.toml")


@pytest.fixture
def of_spark(tmp_path: Path) -> str:
    """A configuration that says how the driver's JVM is to be started."""
    file = tmp_path / "lagwise.toml"
    file.write_text(
        """[spark]
"spark.driver.memory" = "6g"
"spark.driver.extraJavaOptions" = "-Xss4m -Da=1"
"spark.driver.extraClassPath" = "/opt/x.jar"
"spark.driver.defaultJavaOptions" = "-Dc=1"
"spark.driver.extraLibraryPath" = "env:LIBRARIES"
"spark.executor.memory" = "3g"
""",
        encoding="utf-8",
    )
    return str(file)


def test_jvm_of_a_driver_on_this_machine_is_started_as_the_configuration_says(of_spark: str) -> None:
    started = Started("--config", of_spark, SUBMIT_ARGS="--driver-memory 1g --conf spark.driver.memory=2g")

    assert started.conf["spark.driver.memory"] == "6g"
    assert started.conf["spark.driver.extraJavaOptions"] == "-Xss4m -Da=1"
    assert started.conf["spark.driver.extraClassPath"] == "/opt/x.jar"
    assert BROUGHT.shared_classes[0] not in started.conf["spark.driver.defaultJavaOptions"]
    # Spark takes the last option for the heap, whatever its name.
    assert started.words.index("spark.driver.memory=6g") > started.words.index("--driver-memory")
    # The session sets the one; a command line would show the value of the other.
    assert started.conf.keys().isdisjoint({"spark.executor.memory", "spark.driver.extraLibraryPath"})


@pytest.mark.parametrize("submitted", ["", "--master yarn --deploy-mode cluster"], ids=["here", "cluster"])
def test_jvm_of_every_driver_has_the_memory_and_the_java_options_of_the_configuration(
    of_spark: str, submitted: str
) -> None:
    started = Started("--config", of_spark, SUBMIT_ARGS=submitted)

    assert started.conf["spark.driver.memory"] == "6g"
    assert started.conf["spark.driver.defaultJavaOptions"].endswith(" -Dc=1")
    assert started.conf["spark.driver.defaultJavaOptions"].startswith("-D")
    assert started.words.count("--conf") == len(started.conf)


@pytest.mark.parametrize("given", ["--driver-class-path /opt/x.jar", "--driver-class-path=/opt/x.jar"])
def test_class_path_of_the_user_stays(given: str) -> None:
    started = Started(SUBMIT_ARGS=given)

    assert "spark.driver.extraClassPath" not in started.conf
    assert BROUGHT.shared_classes[0] not in started.conf["spark.driver.defaultJavaOptions"]


def test_class_path_of_the_users_file_stays(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.extraClassPath /opt/x.jar")

    assert "spark.driver.extraClassPath" not in Started(SPARK_CONF_DIR=str(tmp_path)).conf


def test_java_options_of_the_user_come_after_those_of_lagwise(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.defaultJavaOptions -Da=1")

    from_file = Started(SPARK_CONF_DIR=str(tmp_path)).conf["spark.driver.defaultJavaOptions"]
    from_option = Started(SUBMIT_ARGS="--conf 'spark.driver.defaultJavaOptions=-Da=1 -Db=2'").conf

    assert from_file.startswith(LOG)
    assert from_file.endswith(" -Da=1")
    assert from_option["spark.driver.defaultJavaOptions"].endswith(" -Da=1 -Db=2")


def test_no_option_replaces_the_java_options_of_a_user() -> None:
    started = Started(SUBMIT_ARGS="--driver-java-options '-Xss4m -Da=1'")

    assert started.last("--driver-java-options") == "-Xss4m -Da=1"
    assert "spark.driver.extraJavaOptions" not in started.conf


@pytest.mark.parametrize("variables", [{}, CLUSTER])
def test_job_that_runs_for_weeks_is_not_ended_for_executors_that_died_long_ago(
    variables: dict[str, str],
) -> None:
    conf = Started(**variables).conf

    assert conf["spark.executor.failuresValidityInterval"] == "1h"
    assert conf["spark.yarn.am.attemptFailuresValidityInterval"] == "1h"


@pytest.mark.parametrize("place", ["spark.executor", "spark.yarn.executor"])
def test_time_after_which_dead_executors_are_forgotten_may_be_another(place: str) -> None:
    conf = Started(SUBMIT_ARGS=f"--conf {place}.failuresValidityInterval=2h").conf

    assert conf.get("spark.executor.failuresValidityInterval") in (None, "2h")


def test_lists_of_the_user_are_joined_with_those_of_lagwise(tmp_path: Path) -> None:
    environment = tmp_path / "environment.tar.gz"
    environment.touch()
    (tmp_path / "spark-defaults.conf").write_text("spark.files /etc/a,/etc/b\nspark.jars no.jar\n")

    started = Started(
        SUBMIT_ARGS="--jars=own.jar --py-files a.zip,b.zip --archives own.tgz#own",
        SPARK_CONF_DIR=str(tmp_path),
        LAGWISE_ENVIRONMENT=str(environment),
        LAGWISE_FILES="ca.pem",
    )

    assert started.last("--jars") == "own.jar,/cache/a.jar,/cache/b.jar"
    assert started.last("--py-files") == "a.zip,b.zip,/cache/lagwise.zip"
    assert started.last("--archives") == f"own.tgz#own,{environment}#environment"
    assert started.last("--files") == "/etc/a,/etc/b,ca.pem"
    assert started.python == "./environment/bin/python"


def test_nothing_is_shipped_that_there_is_not() -> None:
    started = Started()

    assert started.last("--files") is None
    assert started.last("--archives") is None


@pytest.mark.parametrize("config", [("--config", "etc/my.toml"), ("--config=etc/my.toml",)])
def test_driver_in_the_cluster_finds_configuration_and_log_settings_by_their_names(
    config: tuple[str, ...],
) -> None:
    started = Started("--once", *config, **CLUSTER, LAGWISE_FILES="ca.pem")

    assert started.is_cluster
    log_settings, *others = str(started.last("--files")).split(",")
    assert others == ["etc/my.toml", "ca.pem"]
    assert Path(log_settings).is_file()
    assert started.conf["spark.driver.defaultJavaOptions"] == (
        f"{LOG}{Path(log_settings).name} {' '.join(DRIVER_JVM)}"
    )
    assert started.of_job == ("--config", "my.toml", "--once")
    assert "spark.driver.extraClassPath" not in started.conf


def test_driver_in_the_cluster_takes_the_python_of_the_executors_unless_told_otherwise() -> None:
    told = f"{CLUSTER['SUBMIT_ARGS']} --conf spark.yarn.appMasterEnv.PYSPARK_PYTHON=/opt/other"

    conf = Started(SUBMIT_ARGS=told, PYSPARK_PYTHON="/opt/python").conf

    assert conf["spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON"] == "/opt/python"
    assert conf["spark.yarn.appMasterEnv.PYSPARK_PYTHON"] == "/opt/other"


def test_another_spark_has_a_class_path_of_its_own() -> None:
    started = Started(SPARK_SUBMIT="/opt/spark/bin/spark-submit")

    assert "/opt/spark/bin/spark-submit" in started.words
    assert "spark.driver.extraClassPath" not in started.conf
    assert started.conf["spark.driver.defaultJavaOptions"].startswith(LOG)


def test_option_without_its_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Started("--once", "--config")

    assert "--config: expected one argument" in capsys.readouterr().err


def test_option_of_spark_submit_that_is_given_to_the_job_is_not_taken_for_its_configuration() -> None:
    started = Started("--config", "my.toml", "--conf", "spark.a=b")

    assert started.of_job == ("--config", "my.toml", "--conf", "spark.a=b")


def test_file_that_spark_would_take_for_two_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"etc/a,b\.toml: Spark takes a comma"):
        Started("--config", "etc/a,b.toml", **CLUSTER)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SUBMIT_ARGS": "--conf 'spark.a=b"}, "SUBMIT_ARGS .* No closing quotation"),
        ({"LAGWISE_ENVIRONMENT": "gone.tar.gz"}, r"no file gone\.tar\.gz: make it by deploy/pack\.sh"),
    ],
)
def test_variable_that_cannot_be_used_is_named(variables: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Started(**variables)
