"""A token that may only read, and how often one may try to approve."""

import base64
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.config.model import Config, ServeConfig
from pipeline.errors import ConfigError
from pipeline.operate.cli.serve import read_token_of
from pipeline.operate.serve.app import build_app
from pipeline.operate.serve.listener.seldom import Seldom
from pipeline.operate.serve.orders import Desk
from pipeline.operate.serve.rate import Rate
from pipeline.tables.reading import Tables
from tests.support.operate.asgi import ask
from tests.support.operate.table_world import World

_READS, _APPROVES = "may read the page", "may approve a plan"
_PATHS = ("/", "/group?id=billing", "/api/v1/groups", "/metrics", "/health", "/static/page.css", "/nowhere")


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"ann:{password}".encode()).decode()


def test_nothing_but_probes_is_read_without_the_token(world: World) -> None:
    world.complete()
    app = build_app(Tables(str(world.root)), Config(), read_token=_READS)

    for path in _PATHS:
        answer = ask(app, path, Host="localhost")
        assert (answer.status, answer.headers["www-authenticate"][:5]) == (401, "Basic")
        assert "serve.read_token" in answer.text
    assert ask(app, "/healthz", Host="localhost").status == 200
    assert ask(app, "/readyz", Host="localhost").status == 503


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (f"Bearer {_READS}", 200),
        (f"bearer {_APPROVES}", 200),
        (basic(_READS), 200),
        (basic(_APPROVES), 200),
        (basic("wrong"), 401),
        (f"Bearer {_READS}x", 401),
        ("Bearer", 401),
        ("Basic !", 401),
        ("Basic " + base64.b64encode(_READS.encode()).decode(), 401),
        (f"Digest {_READS}", 401),
    ],
)
def test_reader_brings_one_of_the_tokens(world: World, authorization: str, expected: int) -> None:
    world.complete()
    desk = Desk(token=_APPROVES, approve=lambda *_, **__: None, stand=lambda *_, **__: "")
    app = build_app(Tables(str(world.root)), Config(), desk, read_token=_READS)

    assert ask(app, "/", Host="localhost", Authorization=authorization).status == expected


def test_reader_may_not_approve(world: World) -> None:
    world.complete()
    written: list[str] = []
    desk = Desk(token=_APPROVES, approve=lambda group, **_: written.append(group), stand=lambda *_, **__: "")
    app = build_app(Tables(str(world.root)), Config(), desk, read_token=_READS)
    own = {"Host": "localhost", "Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    form = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": f"Bearer {_READS}"}

    def order(token: str) -> int:
        body = f"plan=a-b&name=ann&token={token.replace(' ', '+')}".encode()
        return ask(app, "/approve?id=billing", method="POST", body=body, **own, **form).status

    assert (order(_READS), written) == (403, [])
    assert (order(_APPROVES), written) == (200, ["billing"])


def test_two_tokens_are_two(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("correct horse battery\n", encoding="utf-8")
    same = f"file:{file}"

    assert read_token_of(Config()) is None
    assert read_token_of(Config(serve=ServeConfig(read_token=same))) == "correct horse battery"
    with pytest.raises(ConfigError, match=r"^serve\.read_token: is the same as serve\.token"):
        read_token_of(Config(serve=ServeConfig(read_token=same, token=same)))
    file.write_text("short", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^serve\.read_token: has 5 characters"):
        read_token_of(Config(serve=ServeConfig(read_token=same)))


def test_eleventh_order_of_a_minute_is_not_looked_at(world: World) -> None:
    world.complete()
    app = build_app(
        Tables(str(world.root)),
        Config(),
        Desk(token=_APPROVES, approve=lambda *_, **__: None, stand=lambda *_, **__: ""),
    )

    # Whoever guesses at one form has not a second one to guess at.
    paths = ("/approve?id=a", "/order?id=a") * 6
    found = [ask(app, path, method="POST", body=b"token=x", Host="localhost") for path in paths]

    assert [answer.status for answer in found] == [403] * 10 + [429] * 2
    assert "At most 10 orders a minute" in found[-1].text


def test_rate_is_of_each_address_and_of_the_last_minute() -> None:
    now_s = 0.0
    rate = Rate(2, per_s=60, now_s=lambda: now_s)

    assert [rate.admits("a") for _ in range(3)] == [True, True, False]
    assert rate.admits("b")
    now_s = 60.0
    assert [rate.admits("a") for _ in range(3)] == [True, True, False]


def test_rate_remembers_a_thousand_addresses() -> None:
    rate = Rate(1, per_s=60, now_s=lambda: 0.0)

    assert all(rate.admits(str(number)) for number in range(1_001))
    assert not rate.admits("1000")
    assert rate.admits("0")


def test_warning_comes_once_a_minute_and_says_how_many_were_held_back() -> None:
    now_s = 0.0
    seldom = Seldom(now_s=lambda: now_s)
    one = {"name": "serve", "levelno": logging.WARNING, "msg": "refused"}

    def passes(**other: object) -> logging.LogRecord | None:
        record = logging.makeLogRecord({**one, **other})
        return record if seldom.filter(record) else None

    assert [bool(passes()) for _ in range(3)] == [True, False, False]
    assert passes(msg="another")
    assert all(passes(levelno=logging.INFO) for _ in range(3))
    now_s = 60.0
    later = passes()
    assert later
    assert vars(later)["held_back"] == 2


def test_address_that_others_reach_says_who_can_read(tmp_path: Path) -> None:
    file, token = tmp_path / "lagwise.toml", tmp_path / "token"
    token.write_text("correct horse battery\n", encoding="utf-8")
    file.write_text(f'[tables]\nroot = "{tmp_path}"\n', encoding="utf-8")
    open_to_all = notes_of("--config", str(file), "--host", "0.0.0.0")  # noqa: S104 - what the test is about
    alone = notes_of("--config", str(file))
    file.write_text(
        f'[tables]\nroot = "{tmp_path}"\n[serve]\nhosts = ["lag.example.com"]\nread_token = "file:{token}"\n',
        encoding="utf-8",
    )
    closed = notes_of("--config", str(file), "--host", "0.0.0.0")  # noqa: S104 - the same

    assert [line.split()[0] for line in open_to_all] == ["serve.hosts", "serve.read_token", "serving"]
    assert [line.split()[0] for line in alone] == ["serving"]
    assert [line.split()[0] for line in closed] == ["serving"]


def notes_of(*arguments: str) -> list[str]:
    """What the command says until it listens."""
    command = [
        sys.executable,
        "-c",
        "from pipeline.operate.cli.app import main; main()",
        "serve",
        "--port",
        "0",
        *arguments,
    ]
    found: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            found.append(line)
            if " on http://" in line:
                break
        process.kill()
    return found
