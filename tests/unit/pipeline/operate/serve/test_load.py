"""A group of 50,000 partitions: pages of it, and who else is served while eight clients ask for it."""

import base64
import json
import logging
import threading
import time
from collections.abc import Iterator
from http.client import HTTPException
from itertools import pairwise

import pytest

from tests.support.operate.serving import Serving, serving
from tests.support.operate.table_world import World

log = logging.getLogger(__name__)

_PARTITIONS = 50_000
_CLIENTS = 8
_ALIVE_WITHIN_S = 1.0
_LARGE = (
    "/api/v1/groups/billing/partitions",
    "/api/v1/groups/billing/partitions?limit=10000",
    "/group?id=billing",
    "/api/v1/groups/billing",
)

_NESTED, _HALF_A_PAIR = (
    "after=" + base64.urlsafe_b64encode(text).decode().rstrip("=")
    for text in (b"[" * 3_000, b'["\\ud800",1]')
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    world = World(tmp_path_factory.mktemp("load"))
    world.write(
        "partition_lag",
        *(
            {"topic": f"t{number % 7}", "partition": number // 7, "lag": number, "lag_seconds": 1.0}
            for number in range(_PARTITIONS)
        ),
    )
    world.complete()
    with serving("--tables", str(world.root)) as running:
        yield running


def test_process_is_alive_while_eight_clients_ask_for_everything(served: Serving) -> None:
    ended = threading.Event()
    answers: list[int] = []

    def ask_until_end(first: int) -> None:
        number = first
        while not ended.is_set():
            try:
                answers.append(served.get(_LARGE[number % len(_LARGE)]).status)
            except (OSError, HTTPException):
                answers.append(0)
            number += 1

    clients = [threading.Thread(target=ask_until_end, args=(number,)) for number in range(_CLIENTS)]
    for client in clients:
        client.start()
    waited_s = []
    try:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            began = time.monotonic()
            assert served.get("/healthz").status == 200
            waited_s.append(time.monotonic() - began)
    finally:
        ended.set()
        for client in clients:
            client.join()

    log.info(
        "alive within %.3f s (%s questions); %s answers to eight clients",
        max(waited_s),
        len(waited_s),
        len(answers),
    )
    assert max(waited_s) < _ALIVE_WITHIN_S
    assert set(answers) == {200}
    assert len(answers) >= _CLIENTS


def test_pages_follow_one_another_and_have_every_partition_once(served: Serving) -> None:
    path, found, pages = "/api/v1/groups/billing/partitions?limit=7000", [], []
    while path:
        answer = served.get(path)
        page = json.loads(answer.text)
        found += [(row["topic"], row["partition"]) for row in page["partitions"]]
        pages.append(len(page["partitions"]))
        path = page["next"]
        assert answer.headers.get("link") == (f'<{path}>; rel="next"' if path else None)
        assert page["total"] == _PARTITIONS

    assert pages == [7_000] * 7 + [1_000]
    assert all(one < other for one, other in pairwise(found))
    assert len(found) == _PARTITIONS


def test_page_is_a_thousand_partitions_unless_the_request_says_otherwise(served: Serving) -> None:
    page = json.loads(served.get("/api/v1/groups/billing/partitions").text)

    assert len(page["partitions"]) == 1_000
    assert page["next"].startswith("/api/v1/groups/billing/partitions?after=")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=10001",
        "limit=x",
        "after=",
        "after=!",
        "after=W10",
        "after=WyJhIiwgMS41XQ",
        _NESTED,
        _HALF_A_PAIR,
    ],
)
def test_page_that_cannot_be_is_refused(served: Serving, query: str) -> None:
    answer = served.get(f"/api/v1/groups/billing/partitions?{query}")

    assert answer.status == 400
    assert json.loads(answer.text)["error"].startswith(query.partition("=")[0])
