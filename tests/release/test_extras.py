"""Each extra brings what it is for, and nothing that it is not for."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.support.operate.serving import get
from tests.support.operate.table_world import World
from tests.support.wheels import Environment, clean_environment

_SPARK = {"pyspark", "py4j", "delta_spark"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("tables"))
    world.write("partition_lag", {"lag": 5})
    world.complete()
    return world


@pytest.fixture(scope="module")
def server(installed: Callable[[str], Environment]) -> Environment:
    return installed("serve")


@pytest.fixture(scope="module")
def bare(installed: Callable[[str], Environment]) -> Environment:
    return installed("")


@pytest.fixture(scope="module")
def url(server: Environment, tables: World) -> Iterator[str]:
    command = [server.program("lagwise"), "serve", "--port", "0", "--tables", str(tables.root)]
    with subprocess.Popen(
        command, cwd=server.place, env=clean_environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr
            said = process.stderr.readline()
            assert " on http://" in said, said + process.stderr.read()
            yield said.split()[-1]
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/metrics", "kafka_consumergroup_lag{"),
        ("/", "billing"),
        ("/static/page.css", "{"),
        ("/api/v1/groups", "billing"),
        ("/healthz", ""),
    ],
)
def test_serve_answers_without_spark_and_kafka_clients(url: str, path: str, words: str) -> None:
    answer = get(f"{url}{path}")

    assert answer.status == 200
    assert words in answer.text


def test_extra_serve_has_neither_spark_nor_a_kafka_client(server: Environment) -> None:
    assert not server.packages() & (_SPARK | {"confluent_kafka", "pandas"})


def test_reading_commands_come_with_serve(server: Environment, tables: World) -> None:
    done = server.run("lagwise", "lag", "--tables", str(tables.root), "-o", "csv")

    assert (done.returncode, done.stderr) == (0, "")
    assert "billing" in done.stdout


def test_backup_comes_with_serve(server: Environment, tables: World) -> None:
    done = server.run("lagwise", "backup", "copy", "--tables", str(tables.root))

    assert (done.returncode, done.stderr) == (0, "")
    assert (server.place / "copy" / "partition_lag" / "_delta_log").is_dir()


def test_command_whose_packages_are_missing_names_the_extra(server: Environment) -> None:
    done = server.run("lagwise", "run")

    assert done.returncode == 1
    assert done.stderr.startswith("lagwise: this command needs the package ")
    assert done.stderr.endswith(": pip install 'lagwise[stream]'\n")
    assert len(done.stderr.splitlines()) == 1


def test_version_is_that_of_the_wheel(server: Environment) -> None:
    done = server.run("lagwise", "--version")

    (folder,) = server.home.glob("lib/python*/site-packages/lagwise-*.dist-info")
    assert done.stdout == f"lagwise {folder.name.removeprefix('lagwise-').removesuffix('.dist-info')}\n"


def test_the_command_tells_an_environment_without_extras_what_to_install(bare: Environment) -> None:
    done = bare.run("lagwise", "lag")

    assert done.returncode == 1
    assert done.stderr == "lagwise: this command needs the package typer: pip install 'lagwise[serve]'\n"
