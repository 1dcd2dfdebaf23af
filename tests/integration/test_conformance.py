"""The conformance kit in its short form: our followers keep the rules, and those that do wrong are found out.

All are judged at the same time: what a trial does most is to wait.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.conformance.assignor import RULES as ASSIGNOR
from tests.conformance.hand_over import RULES as HAND_OVER
from tests.support.conformance.conformance_runs import only, python_follower, quick, unkept

ROOT = Path(__file__).parents[2]
EXPIRY = "Follow nothing past valid_until."
ONE_OWNER = "No partition has two owners."
APPLIES = "A plan that fits is accepted, handed over and applied, in the generation that there is."

RUNS = {
    "confluent-kafka": (python_follower("confluent"), quick(HAND_OVER)),
    "kafka-python": (python_follower("kafka_python", "cooperative"), quick(ASSIGNOR)),
    "keeps reading": (python_follower("confluent", "keeps-reading"), only(HAND_OVER, ONE_OWNER)),
    "never expires": (python_follower("confluent", "never-expires"), only(HAND_OVER, EXPIRY, ONE_OWNER)),
}
Unkept: TypeAlias = Mapping[str, Future[dict[str, str]]]


@pytest.fixture(scope="module")
def unkept_by(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unkept]:
    folder = tmp_path_factory.mktemp("conformance")
    with ThreadPoolExecutor(len(RUNS)) as pool:
        yield {
            name: pool.submit(unkept, broker.bootstrap_servers, folder / name.replace(" ", "-"), *run)
            for name, run in RUNS.items()
        }


@pytest.mark.parametrize("name", ["confluent-kafka", "kafka-python"])
def test_our_follower_keeps_every_rule(unkept_by: Unkept, name: str) -> None:
    assert unkept_by[name].result() == {}


def test_follower_that_keeps_reading_what_it_gave_away_is_a_second_owner(unkept_by: Unkept) -> None:
    found = unkept_by["keeps reading"].result()

    assert set(found) == {APPLIES, ONE_OWNER}
    assert "at one time" in found[ONE_OWNER]


def test_follower_that_does_not_look_at_valid_until_breaks_that_rule_alone(unkept_by: Unkept) -> None:
    found = unkept_by["never expires"].result()

    assert set(found) == {EXPIRY}
    # How far it has come by then hangs on the machine.
    assert "was followed: " in found[EXPIRY]
    assert "3 follows" in found[EXPIRY]


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (["--hand-over"], 2, "no CMD: write -- and behind it what starts one member"),
        (["--help"], 0, "m1 joined 3 m1-50381e11 0,1"),
    ],
)
def test_call_without_a_command_and_help_teach(command: list[str], status: int, words: str) -> None:
    done = _kit(*command)

    assert done.returncode == status
    assert words in done.stdout + done.stderr


def test_command_that_ends_at_once_is_not_judged_and_its_last_words_are_shown() -> None:
    done = _kit("--assignor", "-o", "json", "--", "sh", "-c", "echo 'no such flag' >&2; exit 3")
    said = json.loads(done.stdout)

    assert (done.returncode, said["exit_status"]) == (2, 2)
    assert {rule["outcome"] for rule in said["rules"]} == {"not judged"}
    assert "no such flag" in said["rules"][0]["why"]


def _kit(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.conformance", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
