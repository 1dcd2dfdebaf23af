"""The strategies' assignors in Java against Python's: the same groups, the same partitions, the same bytes."""

import json
import subprocess
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.support.assignors.strategy_worlds import answered, decided, world
from tests.support.java.java_jar import JavaJar, java_jar
from tests.support.java.java_lives import Document

CASES = 400
STRATEGIES = [
    ("lag-aware", False),
    ("constrained-cooperative-sticky", False),
    ("constrained-cooperative-sticky", True),
    ("sticky-stream-join", False),
    ("sticky-stream-join", True),
]


@pytest.fixture(scope="module")
def jar() -> JavaJar:
    return java_jar()


def asked(jar: JavaJar, cases: list[Document]) -> list[Document]:
    done = subprocess.run(
        jar.command("lagwise.follow.Strategies"),
        input="".join(json.dumps(one) + "\n" for one in cases),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def placed(answer: Document) -> list[tuple[str, str, int]]:
    return [(m, t, n) for m, by in answer["placed"].items() for t, numbers in by.items() for n in numbers]


def check_fallback(one: Document, answer: Document, expected: Document) -> None:
    """Kafka's sticky has its own ties: each partition that Python's places has a reader, and that reads its topic."""
    places = Counter((t, n) for _, t, n in placed(answer))
    assert set(places.values()) <= {1}
    assert all(topic in one["members"][name]["topics"] for name, topic, _ in placed(answer))
    if not one["cooperative"]:
        assert set(places) == {(t, n) for _, t, n in placed(expected)}


@pytest.mark.parametrize(("name", "cooperative"), STRATEGIES)
def test_java_leader_gives_what_pythons_gives(jar: JavaJar, name: str, *, cooperative: bool) -> None:
    random = Random(169)
    cases = [world(random, name, cooperative=cooperative) for _ in range(CASES)]
    seen = Counter[Any]()

    for one, answer in zip(cases, asked(jar, cases), strict=True):
        expected, decision = answered(one), decided(one)
        by_sticky = decision.why.startswith("sticky: ")
        if by_sticky:
            check_fallback(one, answer, expected)
            answer["placed"] = expected["placed"]
        assert answer == expected, one
        seen["sticky" if by_sticky else name] += 1
        seen["waits"] += bool((decision.step.member != decision.target.member).any())

    assert seen[name] > CASES // 3, seen
    assert not cooperative or seen["waits"] > CASES // 10, seen
