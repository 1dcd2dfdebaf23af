"""`lagwise-follow`, alone in an environment of a consumer."""

import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.conformance.assignor import RULES as ASSIGNOR
from tests.conformance.hand_over import RULES as HAND_OVER
from tests.conformance.trial import Rule
from tests.support.brokers.broker import create_offsets_topic, small_broker
from tests.support.conformance.conformance_runs import only, unkept
from tests.support.wheels import ROOT, Environment

_MOST_BYTES = 300_000
_CLIENTS = {"confluent": "confluent", "kafka-python": "kafka_python", "aiokafka": "aiokafka"}
_FITS = "is accepted, handed over and applied", "is applied in a rebalance"

renamed: Callable[[str], str] = runpy.run_path(str(ROOT / "deploy" / "follow" / "build.py"))["renamed"]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with small_broker() as running:
        create_offsets_topic(running.bootstrap_servers)
        yield running


@pytest.fixture(scope="module", params=sorted(_CLIENTS))
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def consumer(client: str, follows: Callable[[str], Environment]) -> Environment:
    return follows(client)


def test_wheel_is_small_and_holds_one_package(follow_wheel: Path) -> None:
    with ZipFile(follow_wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}

    assert {name for name in tops if not name.endswith(".dist-info")} == {"lagwise_follow"}
    assert follow_wheel.stat().st_size <= _MOST_BYTES


def test_a_module_of_the_consumer_named_assignor_does_no_harm(consumer: Environment, client: str) -> None:
    (consumer.place / "assignor.py").write_text("raise SystemExit('the wrong one')\n", encoding="utf-8")

    done = consumer.run("python", "-c", f"import lagwise_follow.{_CLIENTS[client]} as it; print(it.__file__)")

    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout).is_relative_to(consumer.home)


def test_extra_brings_its_client_and_numpy_to_those_that_may_lead(consumer: Environment, client: str) -> None:
    expected = {
        "confluent": {"confluent_kafka"},
        "kafka-python": {"kafka_python", "numpy"},
        "aiokafka": {"aiokafka", "async_timeout", "packaging", "typing_extensions", "numpy"},
    }

    assert consumer.packages() == expected[client] | {"lagwise_follow"}


def test_consumer_of_the_package_applies_a_plan(
    consumer: Environment, client: str, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    command = _follower(consumer, client)
    rules: list[Rule] = only(HAND_OVER if client == "confluent" else ASSIGNOR, *_FITS)

    assert unkept(broker.bootstrap_servers, tmp_path / client, command, rules) == {}


def _follower(consumer: Environment, client: str) -> list[str]:
    """The command of the conformance kit's own follower, which imports the package in place of the checkout."""
    source = ROOT / "tests" / "conformance" / "followers"
    target = consumer.place / "tests" / "conformance" / "followers"
    name = "aiokafka_client" if client == "aiokafka" else _CLIENTS[client]
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("java", "__pycache__"), dirs_exist_ok=True)
    for file in target.glob("*.py"):
        file.write_text(renamed(file.read_text(encoding="utf-8")), encoding="utf-8")
    # Those that do wrong want every client.
    (target / "wrong.py").write_text("FOLLOWERS, CHANGES = {}, {}\n", encoding="utf-8")
    words = ["eager"] if client == "kafka-python" else []
    run = f"cd {consumer.place} && exec {consumer.program('python')} -m tests.conformance.followers.{name}"
    return ["env", "-u", "PYTHONPATH", "sh", "-c", f"{run} {' '.join(words)}"]
