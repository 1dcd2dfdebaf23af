"""The Java member against Python's: the same records read, the same decisions made, the same bytes sent."""

import subprocess
from collections import Counter
from random import Random
from typing import Any

import pytest

from assignor.clients.plugin.user_data import decode_subscription_data, subscription_data_of
from tests.support.java.java_jar import VERSIONS, JavaJar, java_jar, replayed
from tests.support.java.java_lives import Document, PythonMember, joined, life

LIVES = 3800


@pytest.fixture(scope="module")
def jar() -> JavaJar:
    return java_jar()


def holders(event: Document) -> dict[tuple[str, int], set[str]]:
    """Who still reads a partition, in whatever generation."""
    by_place: dict[tuple[str, int], set[str]] = {}
    for name, member in event["members"].items():
        data = subscription_data_of(joined(name, member).user_data)
        for topic, numbers in data.claims.owned.items() if data.held else ():
            for number in numbers:
                by_place.setdefault((topic, number), set()).add(name)
    return by_place


def check_fallback(event: Document, answer: Document, expected: Document) -> None:
    """Each partition that is read has one reader, or waits for somebody to give it up."""
    topics = {name: set(member["topics"]) for name, member in event["members"].items()}
    placed = [
        (t, n, name) for name, by in answer["placed"].items() for t, numbers in by.items() for n in numbers
    ]
    places = Counter((topic, number) for topic, number, _ in placed)
    counts = {topic: int(ranges[-1]) + 1 for topic, ranges in event["counts"].items()}
    read = {(t, n) for t in set().union(*topics.values()) for n in range(counts.get(t, 0))}
    held = holders(event)
    assert all(topic in topics[name] for topic, _, name in placed)
    assert set(places.values()) <= {1}
    assert set(places) <= read
    assert read - set(places) <= set(held)
    assert answer["user_data"] == expected["user_data"]


def check(event: Document, answer: Any, expected: Any) -> None:
    match event["do"]:
        case "join":
            sent = decode_subscription_data(bytes.fromhex(answer))
            assert sent == expected
        case "lead" if expected["epoch"] is None:
            assert (answer["epoch"], answer["why"]) == (None, expected["why"])
            check_fallback(event, answer, expected)
        case _:
            assert answer == expected


def test_java_member_does_as_pythons_does(jar: JavaJar) -> None:
    random = Random(13)
    lives = [life(random) for _ in range(LIVES)]
    decided, fed = Counter[str](), Counter[str]()

    for number, (document, said) in enumerate(zip(lives, replayed(jar, lives), strict=True)):
        member = PythonMember(document)
        for event, answer in zip(document["events"], said, strict=True):
            expected = member.answer(event)
            if event["do"] == "lead":
                del answer["awaits"]
            try:
                check(event, answer, expected)
            except AssertionError as error:
                raise AssertionError(f"life {number}: {event} {answer} {expected}") from error
            if event["do"] == "lead":
                decided["".join(c for c in expected["why"] if not c.isdigit())[:50]] += 1
            elif event["do"] == "feed":
                fed[expected] += 1

    assert decided["the plan fits"] > LIVES // 10
    assert len(decided) >= 10, decided
    assert any("is over by the leader's clock" in why for why in decided)
    assert min(fed.values()) > LIVES // 100, fed
    assert len(fed) == 5


@pytest.mark.parametrize("version", VERSIONS)
def test_following_consumer_keeps_what_it_promises(jar: JavaJar, version: str) -> None:
    command = jar.command("lagwise.follow.Checks", version=version)
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=60)

    checked = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert len(checked) == 16, done.stderr
    assert set(checked.values()) == {"ok"}, done.stderr
