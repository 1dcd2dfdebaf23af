"""An order on the page: who may give it, and what is written."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from threading import Barrier, BrokenBarrierError, Event
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, urlencode, urlsplit

import anyio.to_thread
import pytest

from assignor.errors import EncodeError
from pipeline.config.model import Config
from pipeline.errors import (
    AccessRefusedError,
    BrokerUnavailableError,
    ConfigError,
    NotWaitingError,
    StoreError,
)
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.orders import Desk, why_too_short
from pipeline.tables.reading import Tables
from tests.support.operate.asgi import ask
from tests.support.operate.page_orders import BY_ANN, FORM, FROM, TOKEN, sent, write_waiting
from tests.support.operate.serving import Answer, get, serving_app
from tests.support.operate.table_world import World

_FIELDS = {"plan": "3f2a-91bc", **BY_ANN}

Ordering = Callable[..., Answer]


@dataclass
class Clerk:
    """Takes orders, or fails."""

    written: list[dict[str, str]] = field(default_factory=list)
    failure: Exception | None = None

    def __call__(self, group: str, *, plan: str, reason: str, by: str) -> None:
        if self.failure:
            raise self.failure
        self.written.append({"group": group, "plan": plan, "reason": reason, "by": by})


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


@pytest.fixture
def waiting(world: World) -> World:
    write_waiting(world, "b-1", "b-2")
    world.complete()
    return world


@pytest.fixture
def app(waiting: World, clerk: Clerk) -> Any:
    return build_app(
        Tables(str(waiting.root)), Config(), Desk(token=TOKEN, approve=clerk, stand=lambda *_, **__: "")
    )


@pytest.fixture
def order(app: Any) -> Ordering:
    """Send the form, with other fields or headers than the page would."""

    def send(*, fields: dict[str, str] | None = None, group: str = "billing", **headers: str) -> Answer:
        return sent(app, f"/approve?id={quote(group, safe='')}", {**_FIELDS, **(fields or {})}, **headers)

    return send


def test_form_says_which_plan_is_looked_at_and_sends_no_token_anywhere_else(app: Any) -> None:
    html = ask(app, "/group?id=billing").text

    assert '<form method="post" action="/approve?id=billing" class="order">' in html
    assert '<input type="hidden" name="plan" value="3f2a-91bc">' in html
    assert '<details id="moves" open>' in html
    assert TOKEN not in html
    assert ask(app, "/group?id=billing").headers["referrer-policy"] == "same-origin"


def test_without_a_token_there_is_no_form_and_nothing_that_takes_one(waiting: World) -> None:
    app = build_app(Tables(str(waiting.root)), Config())

    answer = ask(app, "/approve?id=billing", method="POST", body=urlencode(_FIELDS).encode(), **FROM)

    assert answer.status == 404
    html = ask(app, "/group?id=billing").text
    assert 'method="post"' not in html
    assert "<code>lagwise approve</code>" in html


def test_order_is_written_with_who_has_given_it(order: Ordering, clerk: Clerk) -> None:
    answer = order(fields={"name": " ann "})

    assert answer.status == 200
    assert "ann@page has approved plan 3f2a-91bc" in answer.text
    assert '<a href="/group?id=billing">' in answer.text
    assert clerk.written == [{"group": "billing", "plan": "3f2a-91bc", "reason": "INC-1", "by": "ann@page"}]


@pytest.mark.parametrize("group", ["a/b", "new\nline", "<script>", "ü&b=c", ""])
def test_group_of_any_name_is_the_one_that_is_meant(order: Ordering, clerk: Clerk, group: str) -> None:
    answer = order(group=group)

    assert [one["group"] for one in clerk.written] == [group]
    assert "<script>" not in answer.text


@pytest.mark.parametrize(
    ("given", "status", "text"),
    [
        ({"fields": {"token": "wrong"}}, 403, "The token is not that of serve.token."),
        ({"fields": {"token": ""}}, 403, "The token is not that of serve.token."),
        ({"fields": {"token": "ü" * 20}}, 403, "The token is not that of serve.token."),
        ({"Origin": "https://evil.example.com"}, 403, "was not sent by a page of the same host"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "another site sent it"),
        ({"Content-Type": "text/plain"}, 400, "is not application/x-www-form-urlencoded"),
        ({"fields": {"name": "  "}}, 400, "Say who you are."),
        ({"fields": {"name": "a\nb"}}, 400, "cannot be printed"),
        ({"fields": {"name": "a" * 65}}, 400, "more than 64 characters"),
        ({"fields": {"reason": "a" * 501}}, 400, "more than 500 characters"),
        ({"fields": {"reason": "a" * 20_000}}, 413, "too long"),
    ],
    ids=str,
)
def test_order_that_is_none_is_refused_and_not_written(
    order: Ordering, clerk: Clerk, given: dict[str, Any], status: int, text: str
) -> None:
    answer = order(**given)

    assert (answer.status, text in answer.text) == (status, True)
    assert clerk.written == []


@pytest.mark.parametrize("body", [b"\xff", b"plan=%ff", b"token=" + quote(TOKEN).encode()])
def test_body_that_is_no_form_is_refused(app: Any, clerk: Clerk, body: bytes) -> None:
    headers = {**FROM, "Content-Type": FORM}

    assert ask(app, "/approve?id=billing", method="POST", body=body, **headers).status == 400
    assert ask(app, "/approve", method="POST", body=urlencode(_FIELDS).encode(), **headers).status == 400
    assert clerk.written == []


def test_reading_changes_nothing(app: Any, clerk: Clerk) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        answer = ask(app, f"/approve?id=billing&{urlencode(_FIELDS)}", method=method, **FROM)
        assert answer.status == 405
    assert clerk.written == []


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (NotWaitingError("eva@desk has already approved the plan"), 409),
        (BrokerUnavailableError("another operator gave an order at the same moment"), 503),
        (ConfigError("kafka.properties: the variable KAFKA_PASSWORD is not set"), 503),
        (AccessRefusedError("the cluster does not let this user write"), 503),
        (StoreError("table plan_state cannot be read"), 503),
        (EncodeError("not encodable"), 400),
    ],
    ids=lambda value: type(value).__name__,
)
def test_order_that_cannot_be_written_says_why(
    order: Ordering, clerk: Clerk, failure: Exception, status: int
) -> None:
    clerk.failure = failure

    answer = order()

    assert (answer.status, f"{failure}." in answer.text) == (status, True)


def test_orders_of_two_operators_are_written_one_after_the_other(order: Ordering, clerk: Clerk) -> None:
    both = Barrier(2)

    def meet(*_: str, **__: str) -> None:
        with suppress(BrokenBarrierError):
            both.wait(0.2)
            clerk.failure = AssertionError("two at once")

    with patch.object(Clerk, "__call__", meet), ThreadPoolExecutor(2) as operators:
        answers = [operators.submit(order) for _ in range(2)]

    assert [answer.result().status for answer in answers] == [200, 200]
    assert clerk.failure is None


def test_token_that_can_be_guessed_is_not_relied_on() -> None:
    assert why_too_short("x" * 16) is None
    assert (why_too_short("x" * 15) or "").startswith("has 15 characters")


def test_metrics_and_page_answer_while_an_order_waits_for_kafka(waiting: World) -> None:
    began, kafka_answers = Event(), Event()

    def wait(*_: Any, **__: Any) -> None:
        began.set()
        assert kafka_answers.wait(60)

    app = build_app(Tables(str(waiting.root)), Config(), Desk(token=TOKEN, approve=wait, stand=wait))

    async def with_one_thread(scope: Any, receive: Any, send: Any) -> None:
        anyio.to_thread.current_default_thread_limiter().total_tokens = 1
        await app(scope, receive, send)

    def send_order(url: str) -> int:
        connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
        headers = {**FROM, "Content-Type": FORM, "Host": urlsplit(url).netloc, "Origin": url}
        connection.request("POST", "/approve?id=billing", urlencode(_FIELDS), headers)
        return connection.getresponse().status

    with serving_app(with_one_thread) as url, ThreadPoolExecutor(1) as pool:
        order = pool.submit(send_order, url)
        try:
            assert began.wait(30)
            answers = [get(f"{url}{path}", timeout_s=15).status for path in ("/metrics", "/group?id=billing")]
        finally:
            kafka_answers.set()
        assert answers == [200, 200]
        assert order.result(60) == 200
