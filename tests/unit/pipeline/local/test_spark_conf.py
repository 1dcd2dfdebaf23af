"""What spark-submit is told is read as it reads it itself (`tests/integration/test_submit_script.py` has its own word)."""

from pathlib import Path

import pytest

from pipeline.local.spark_conf import folder_of, properties

NOWHERE = Path("nowhere")
DEPLOY_MODE = "spark.submit.deployMode"


@pytest.mark.parametrize(
    "options",
    [
        "--deploy-mode cluster",
        "--deploy-mode=cluster",
        "--conf spark.submit.deployMode=cluster",
        "--conf=spark.submit.deployMode=cluster",
        "-c spark.submit.deployMode=cluster",
        "--master yarn --deploy-mode=cluster --name deployMode=client",
        "--deploy-mode client --deploy-mode cluster",
        "--conf spark.submit.deployMode=client --deploy-mode cluster -c spark.submit.deployMode=client",
    ],
)
def test_property_is_found_however_it_is_spelled(options: str) -> None:
    assert properties(options.split(), {"DEPLOY_MODE": "client"}, NOWHERE)[DEPLOY_MODE] == "cluster"


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--deploy-mode client",
        "--conf spark.app.name=--deploy-mode=cluster",
        "--deploy-mode=cluster --deploy-mode=client",
    ],
)
def test_nothing_else_is_taken_for_it(options: str) -> None:
    assert properties(options.split(), {}, NOWHERE).get(DEPLOY_MODE, "client") == "client"


def test_option_without_a_value_is_left_to_spark_submit() -> None:
    assert properties(["--jars"], {}, NOWHERE) == {"spark.jars": ""}


def test_value_may_hold_equals_signs() -> None:
    options = ["--conf", "spark.driver.defaultJavaOptions=-Da=b", "--files=a=b"]

    told = properties(options, {}, NOWHERE)

    assert told == {"spark.driver.defaultJavaOptions": "-Da=b", "spark.files": "a=b"}


def test_variable_that_spark_submit_reads_counts_where_nothing_else_does(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.submit.deployMode client\n")

    assert properties([], {"DEPLOY_MODE": "cluster"}, NOWHERE) == {DEPLOY_MODE: "cluster"}
    assert properties([], {"DEPLOY_MODE": "cluster"}, tmp_path) == {DEPLOY_MODE: "client"}


@pytest.mark.parametrize(
    "line",
    [
        "# spark.jars a.jar,\\",
        "spark.a two backslashes\\\\",
        "spark.a form feed\fspark.jars no.jar",
        "spark.a goes on\\\n  # spark.jars no.jar",
    ],
)
def test_line_that_only_looks_as_if_it_went_on_or_ended_leaves_the_next_one_alone(
    line: str, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{line}\nspark.jars own.jar\n")

    assert properties([], {}, tmp_path)["spark.jars"] == "own.jar"


def test_file_of_defaults_is_read_as_java_reads_it(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.jars no.jar\n"
        "  ! spark.jars=no.jar\n"
        "\n"
        "spark.driver.extraClassPath\t/opt/a.jar  \n"
        "spark.jars = hdfs\\://name/a.jar,\\\n"
        "    b.jar\n"
        "spark.driver.memory:3g\n"
        "spark.driver.defaultJavaOptions=-Da=b -Dc:d\r\n"
        "spark.files\n"
    )

    assert properties([], {}, tmp_path) == {
        "spark.driver.extraClassPath": "/opt/a.jar",
        "spark.jars": "hdfs://name/a.jar,b.jar",
        "spark.driver.memory": "3g",
        "spark.driver.defaultJavaOptions": "-Da=b -Dc:d",
        "spark.files": "",
    }


def test_file_that_is_named_stands_for_the_defaults_unless_both_are_wanted(tmp_path: Path) -> None:
    own = tmp_path / "own.conf"
    own.write_text("spark.jars own.jar\n")
    (tmp_path / "spark-defaults.conf").write_text("spark.jars a.jar\nspark.driver.memory 3g\n")

    assert properties([f"--properties-file={own}"], {}, tmp_path) == {"spark.jars": "own.jar"}
    both = properties(["--properties-file", str(own), "--load-spark-defaults"], {}, tmp_path)
    assert both == {"spark.jars": "own.jar", "spark.driver.memory": "3g"}
    assert properties(["--properties-file", "gone.conf"], {}, tmp_path) == {}


def test_folder_is_the_one_of_the_spark_that_is_started(tmp_path: Path) -> None:
    own, program = tmp_path / "spark" / "bin" / "spark-submit", "spark-submit-of-a-cluster"
    own.parent.mkdir(parents=True)

    assert folder_of(str(own), {}) == tmp_path / "spark" / "conf"
    assert folder_of(program, {"SPARK_HOME": "/opt/spark"}) == Path("/opt/spark/conf")
    assert folder_of(program, {"SPARK_HOME": "/opt/spark", "SPARK_CONF_DIR": "/etc/spark"}) == Path(
        "/etc/spark"
    )


def test_folder_of_a_spark_that_pip_installed_is_beside_its_jars(tmp_path: Path) -> None:
    (tmp_path / "find_spark_home.py").touch()

    folder = folder_of(str(tmp_path / "spark-submit"), {})

    assert (folder.parent / "jars").is_dir()
