"""No other site makes a browser read or order anything here."""

import pytest

from pipeline.config.model import Config, ServeConfig
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.sites import is_known, refusal
from pipeline.tables.reading import Tables
from tests.support.operate.asgi import ask
from tests.support.operate.table_world import World

_HERE = ServeConfig()
_BEHIND_PROXY = ServeConfig(host="0.0.0.0", origins=("https://lag.example.com",))  # noqa: S104 - a proxy reaches it
_OWN = {"Host": "localhost:8000", "Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("localhost:9", True),
        ("LOCALHOST", True),
        ("lagwise.localhost", True),
        ("10.1.2.3", True),
        ("evil.example.com:8000", False),
        ("localhost.evil.example.com", False),
        ("127.0.0.1.evil.example.com", False),
        ("", False),
        ("[::1", False),
        ("user@127.0.0.1@evil.example.com", False),
    ],
)
def test_host_is_known_unless_anybody_can_point_it_here(host: str, expected: object) -> None:
    assert is_known(host, _HERE) == expected


def test_host_is_known_by_the_name_that_is_listened_on_and_by_the_proxys() -> None:
    assert is_known("lagwise.internal:8000", ServeConfig(host="lagwise.internal"))
    assert is_known("lag.example.com", _BEHIND_PROXY)
    assert not is_known("lag.example.org", _BEHIND_PROXY)


def test_order_of_a_page_of_the_same_host_is_taken() -> None:
    assert refusal(_OWN, _HERE) is None
    # A browser does not tell the site to what it reached without TLS, other than this machine.
    assert refusal({"Host": "10.1.2.3:8000", "Origin": "http://10.1.2.3:8000"}, _HERE) is None
    assert refusal({"Host": "lagwise:8000", "Origin": "https://lag.example.com"}, _BEHIND_PROXY) is None


@pytest.mark.parametrize(
    "other",
    [
        {"Origin": "https://evil.example.com"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost:8000/"},
        {"Origin": "http://localhost:8000@evil.example.com"},
        {"Host": ""},
        {"Host": "", "Origin": "http://"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Host": "evil.example.com:8000", "Origin": "http://evil.example.com:8000"},
    ],
    ids=str,
)
def test_order_from_anywhere_else_is_refused(other: dict[str, str]) -> None:
    assert refusal({**_OWN, **other}, _HERE)


def test_page_for_every_address_answers_under_no_name_that_was_not_listed(world: World) -> None:
    """DNS rebinding takes a name of the stranger's: it is what his page's browser sends."""
    world.complete()
    app = build_app(Tables(str(world.root)), Config(serve=ServeConfig(host="0.0.0.0")))  # noqa: S104 - the case in point

    by_name = [
        ask(app, "/", Host=name).status for name in ("evil.example.com", "lagwise", "example.com:8000")
    ]
    by_address = [
        ask(app, "/", Host=host).status for host in ("10.1.2.3:8000", "[fd00::1]:8000", "localhost")
    ]

    assert (set(by_name), set(by_address)) == ({421}, {200})


def test_page_is_not_shown_under_a_foreign_name_wherever_it_listens(world: World) -> None:
    world.complete()
    tables = Tables(str(world.root))
    own = build_app(tables, Config())
    shared = build_app(tables, Config(serve=_BEHIND_PROXY))
    hosts = ServeConfig(host="0.0.0.0", hosts=("Lagwise.monitoring.svc",))  # noqa: S104 - as in a cluster
    named = build_app(tables, Config(serve=hosts))

    for path in ("/", "/api/v1/groups", "/metrics"):
        answer = ask(own, path, Host="evil.example.com:8000")
        assert (answer.status, "serve.origins" in answer.text) == (421, True)
        assert ask(own, path, Host="127.0.0.1:8000").status == 200
        assert ask(shared, path, Host="lagwise.monitoring.svc:8000").status == 421
        assert ask(shared, path, Host="lag.example.com").status == 200
        assert ask(shared, path, Host="10.1.2.3:8000").status == 200
        assert ask(named, path, Host="lagwise.monitoring.svc:8000").status == 200
