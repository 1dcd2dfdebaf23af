"""The image: what can be told of it without an engine, and what its steps come to on this machine."""

import re
from pathlib import Path

import yaml

from pipeline.local.embedded.config import KAFKA
from tests.deploy.chart import ROOT
from tests.deploy.tools import go_tool, python_tool, said

DOCKERFILES = (ROOT / "deploy" / "Dockerfile", ROOT / "deploy" / "spark-operator" / "Dockerfile")
COMPOSE = ROOT / "deploy" / "compose.yaml"


def test_dockerfiles_are_without_lint() -> None:
    assert said([python_tool("hadolint"), *DOCKERFILES]) == ""


def test_lint_is_found(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text(DOCKERFILES[0].read_text(encoding="utf-8").replace("# hadolint ignore=DL3008\n", ""))

    assert "DL3008" in said([python_tool("hadolint"), file], refused=True)


def test_image_begins_as_no_root_and_hands_signals_to_lagwise() -> None:
    final = DOCKERFILES[0].read_text(encoding="utf-8").split("FROM base\n")[1]

    assert re.search(r"^USER 65532:65532$", final, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["/usr/bin/tini", "--", "lagwise"\]$', final, re.MULTILINE)
    assert re.search(r'^HEALTHCHECK .* CMD \["lagwise", "health", "--live"\]$', final, re.MULTILINE)
    # Everything is fetched before.
    assert "RUN" not in final


def test_only_what_is_installed_goes_to_the_engine() -> None:
    ignored, *wanted = [
        line
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "**"))
    ]

    assert ignored == "*"
    for line in wanted:
        assert line.startswith("!")
        assert (ROOT / line[1:]).exists(), line


def test_spark_of_the_operator_is_the_one_of_the_package() -> None:
    constraints = (ROOT / "deploy" / "constraints.txt").read_text(encoding="utf-8")
    constraints = (ROOT / "deploy" / "constraints.txt").read_text(encoding="utf-8")
    (pinned,) = re.findall(r"^pyspark==([\d.]+)$", constraints, re.MULTILINE)
    application = yaml.safe_load(
        (ROOT / "deploy" / "spark-operator" / "lagwise.yaml").read_text(encoding="utf-8")
    )

    assert f"apache/spark:{pinned}-python3" in DOCKERFILES[1].read_text(encoding="utf-8")
    assert application["spec"]["sparkVersion"] == pinned


def test_compose_takes_the_file_and_its_paths_are_there() -> None:
    project = yaml.safe_load(said([go_tool("compose"), COMPOSE.name], at=COMPOSE.parent))

    services = project["services"]
    assert {"kafka", "driver", "serve", "tables", "producer", "consumer"} == services.keys()
    for one in services.values():
        for volume in one.get("volumes", []):
            assert volume["type"] == "volume" or Path(volume["source"]).is_file()
    assert (
        Path(services["driver"]["build"]["context"]) / services["driver"]["build"]["dockerfile"]
    ).is_file()


def test_compose_refuses_a_key_that_it_does_not_know(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(
        COMPOSE.read_text(encoding="utf-8").replace("mem_limit", "memory_limit"), encoding="utf-8"
    )

    assert "memory_limit" in said([go_tool("compose"), file], refused=True)


def test_ports_of_the_try_out_are_for_this_machine_alone() -> None:
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]

    ports = [port for one in services.values() for port in one.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_broker_of_the_try_out_is_of_the_version_that_is_tested() -> None:
    version = KAFKA[0].rpartition(":")[2]
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]

    assert {services[name]["image"] for name in ("kafka", "producer", "consumer")} == {
        f"apache/kafka:{version}"
    }
