"""Pause, resume, pin and unpin on the page: as guarded as an approval, and the orders of the commands."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import pytest

from assignor.protocol.commands import Orders
from pipeline import clock
from pipeline.config.model import Config
from pipeline.errors import AccessRefusedError, BrokerUnavailableError, OrderError
from pipeline.operate.cli.orders import standing
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.orders import Desk
from pipeline.tables.reading import Tables
from tests.support.operate.asgi import ask
from tests.support.operate.page_orders import BY_ANN, FROM, TOKEN, sent
from tests.support.operate.serving import Answer
from tests.support.operate.table_world import World

_FIELDS = {"order": "pause", "partitions": "", **BY_ANN}
Ordering = Callable[..., Answer]


@dataclass
class Clerk:
    """Takes orders, or fails."""

    written: list[dict[str, str]] = field(default_factory=list)
    failure: Exception | None = None

    def __call__(self, group: str, **more: str) -> str:
        if self.failure:
            raise self.failure
        self.written.append({"group": group, **more})
        return "<b>paused</b>"


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


@pytest.fixture
def app(world: World, clerk: Clerk) -> Any:
    world.write("partition_lag", {"lag": 900})
    world.complete()
    desk = Desk(token=TOKEN, approve=lambda *_, **__: None, stand=clerk)
    return build_app(Tables(str(world.root)), Config(), desk)


@pytest.fixture
def order(app: Any) -> Ordering:
    """Send the form, with other fields or headers than the page would."""

    def send(**more: str) -> Answer:
        fields = {**_FIELDS, **{name: value for name, value in more.items() if name in _FIELDS}}
        headers = {name: value for name, value in more.items() if name not in _FIELDS}
        return sent(app, "/order?id=billing", fields, **headers)

    return send


def test_group_has_a_form_for_orders_if_there_is_a_token(app: Any, world: World) -> None:
    form = '<form method="post" action="/order?id=billing" class="order">'

    assert form in ask(app, "/group?id=billing").text
    unguarded = build_app(Tables(str(world.root)), Config())
    assert form not in ask(unguarded, "/group?id=billing").text
    body = urlencode(_FIELDS).encode()
    assert ask(unguarded, "/order?id=billing", method="POST", body=body, **FROM).status == 404


@pytest.mark.parametrize("name", ["pause", "resume", "pin", "unpin"])
def test_order_is_written_with_who_has_given_it_and_what_holds_is_told(
    order: Ordering, clerk: Clerk, name: str
) -> None:
    answer = order(order=name, partitions="invoices:0-3 payments")

    assert (answer.status, "&lt;b&gt;paused&lt;/b&gt;" in answer.text) == (200, True)
    assert clerk.written == [
        {
            "group": "billing",
            "order": name,
            "partitions": "invoices:0-3 payments",
            "reason": "INC-1",
            "by": "ann@page",
        }
    ]


@pytest.mark.parametrize(
    ("given", "status", "text"),
    [
        ({"token": "wrong"}, 403, "The token is not that of serve.token."),
        ({"Origin": "https://evil.example.com"}, 403, "was not sent by a page of the same host"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "another site sent it"),
        ({"Content-Type": "text/plain"}, 400, "is not application/x-www-form-urlencoded"),
        ({"name": " "}, 400, "Say who you are."),
        ({"order": ""}, 400, "is missing its group or its order"),
        ({"order": "reset"}, 400, "there are pause, resume, pin, unpin"),
        ({"partitions": "a\nb"}, 400, "cannot be printed"),
        ({"reason": "a" * 501}, 400, "more than 500 characters"),
        ({"partitions": "a" * 20_000}, 413, "too long"),
    ],
    ids=str,
)
def test_order_that_is_none_is_refused_and_not_written(
    order: Ordering, clerk: Clerk, given: dict[str, str], status: int, text: str
) -> None:
    answer = order(**given)

    assert (answer.status, text in answer.text) == (status, True)
    assert clerk.written == []


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (OrderError("pin names no partitions"), 400),
        (BrokerUnavailableError("another operator gave an order at the same moment"), 503),
        (AccessRefusedError("the cluster does not let this user write"), 503),
    ],
    ids=lambda value: type(value).__name__,
)
def test_order_that_cannot_be_written_says_why(
    order: Ordering, clerk: Clerk, failure: Exception, status: int
) -> None:
    clerk.failure = failure

    answer = order()

    assert (answer.status, f"{failure}." in answer.text) == (status, True)


def test_reading_changes_nothing(app: Any, clerk: Clerk) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert ask(app, f"/order?id=billing&{urlencode(_FIELDS)}", method=method, **FROM).status == 405
    assert clerk.written == []


@dataclass
class Topic:
    """A commands topic in memory."""

    held: Orders

    def order(self, group: str, change: Callable[[Orders], Orders], *, by: str) -> tuple[Orders, None]:
        self.held = replace(change(self.held), by=by, at_ms=clock.now_ms())
        assert group == self.held.group
        return self.held, None

    def knows_group(self, _group: str) -> bool:
        return True

    def partitions_of(self, name: str) -> int | None:
        return {"invoices": 3}.get(name)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    held = Topic(Orders(cluster="c", group="billing", pinned={"old": ()}))

    @contextmanager
    def opened(_config: Config) -> Any:
        yield held

    monkeypatch.setattr(standing, "orders_topic", opened)
    return held


def give(order: Any, partitions: str = "", reason: str = "") -> str:
    return standing.stand(
        Config(), "billing", order=order, partitions=partitions, reason=reason, by="ann@page"
    )


def test_pause_and_resume_are_those_of_the_commands(topic: Topic) -> None:
    told = give("pause", reason="INC-1")
    assert (topic.held.paused, topic.held.pause_reason, topic.held.by) == (True, "INC-1", "ann@page")
    assert "Orders for billing are now: paused (INC-1), pinned old." in told

    give("resume")
    assert (topic.held.paused, topic.held.pause_reason) == (False, "")
    assert topic.held.resumed_at_ms is not None
    assert topic.held.pinned == {"old": ()}, "pins stay"


def test_pins_add_up_and_unpin_takes_some_or_all(topic: Topic) -> None:
    told = give("pin", "invoices:0-1,7 payments")
    assert topic.held.pinned == {"old": (), "invoices": (0, 1, 7), "payments": ()}
    assert "Note: topic invoices has only 3 partition(s) now" in told
    assert "Note: the cluster shows no topic payments now" in told

    give("unpin", "invoices:7 old")
    assert topic.held.pinned == {"invoices": (0, 1), "payments": ()}
    give("unpin")
    assert topic.held.pinned == {}


@pytest.mark.parametrize(
    ("order", "partitions", "why"),
    [
        ("pin", "", "pin names no partitions"),
        ("pin", "invoices:x", "write TOPIC or TOPIC:0-3,7"),
        ("unpin", "old:3", "is pinned as a whole"),
    ],
)
def test_partitions_that_are_none_are_refused_and_nothing_is_written(
    topic: Topic, order: str, partitions: str, why: str
) -> None:
    before = topic.held

    with pytest.raises(OrderError, match=why):
        give(order, partitions)
    assert topic.held == before
