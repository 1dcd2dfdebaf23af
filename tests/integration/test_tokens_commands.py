"""Commands on a cluster whose users log in by tokens: by a function, and by librdkafka's own OIDC."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner, Result

from pipeline.kafka import tokens
from pipeline.operate.cli.app import app
from tests.support.brokers.broker import create_topics
from tests.support.brokers.oauth import PROVIDER, OAuthBroker
from tests.support.brokers.oauth_tokens import does, unsecured_jws

COMMANDS = "tokens.commands"
GONE = "the role of this host is gone"


@pytest.fixture(autouse=True)
def _no_token_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_sources", {})


def run(
    command: str, folder: Path, properties: dict[str, str], *, provider: str = PROVIDER, timeout_s: int = 3
) -> Result:
    lines = "".join(f'"{name}" = "{value}"\n' for name, value in properties.items())
    file = folder / "lagwise.toml"
    file.write_text(
        f'[kafka]\ntoken_provider = "{provider}"\n[kafka.properties]\n{lines}'
        f'[source]\nrequest_timeout_s = {timeout_s}\n[control]\ncommands_topic = "{COMMANDS}"\n',
        encoding="utf-8",
    )
    return CliRunner().invoke(app, (*command.split(), "--config", str(file)))


@pytest.fixture(scope="module", autouse=True)
def _topic(oauth: OAuthBroker) -> None:
    create_topics(oauth.open_servers, {COMMANDS: 1})


def test_command_logs_in_with_the_token_of_the_function(oauth: OAuthBroker, tmp_path: Path) -> None:
    does(tmp_path, "ok")

    result = run("pause some-group", tmp_path, oauth.properties(tmp_path))
    assert result.exit_code == 0, result.output
    result = run("orders", tmp_path, oauth.properties(tmp_path))

    assert result.exit_code == 0, result.output
    assert "some-group" in result.output


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (
            "fail",
            f"cluster cannot be used: kafka.token_provider {PROVIDER} failed: PermissionError: {GONE}; nothing can .* by hand",
        ),
        ("hang", f"cluster cannot be used: kafka.token_provider {PROVIDER} has not returned within 3 s; "),
        ("wrong", "cluster cannot be used: .*invalid_token"),
    ],
)
def test_command_without_a_token_that_counts_says_why_in_one_line_and_soon(
    oauth: OAuthBroker, tmp_path: Path, mode: str, reason: str
) -> None:
    does(tmp_path, mode)
    begun_s = time.monotonic()

    result = run("orders", tmp_path, oauth.properties(tmp_path))

    assert result.exit_code == 1
    assert re.match(f"lagwise: .*{reason}", result.stderr), result.stderr
    assert result.stderr.count("\n") == 1
    assert time.monotonic() - begun_s < 10


def test_command_whose_function_is_not_there_says_so_in_one_line(oauth: OAuthBroker, tmp_path: Path) -> None:
    result = run("orders", tmp_path, oauth.properties(tmp_path), provider="no_such_tokens:token")

    assert result.exit_code == 1
    assert re.match(
        r"lagwise: kafka\.token_provider: module no_such_tokens cannot be imported", result.stderr
    )
    assert result.stderr.count("\n") == 1


class _Issuer(BaseHTTPRequestHandler):
    """The token endpoint of an OIDC provider."""

    asked: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append(f"{self.headers['Authorization']} {body}")
        now_s = time.time()
        answer = json.dumps(
            {"access_token": unsecured_jws(now_s, now_s + 60), "token_type": "Bearer", "expires_in": 60}
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_args: object) -> None:
        """Nothing."""


@contextmanager
def issuer() -> Iterator[tuple[str, list[str]]]:
    """URL of a token endpoint, and what it was asked."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Issuer", (_Issuer,), {"asked": asked}))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        server.server_close()


def test_oidc_of_librdkafka_passes_through_the_configuration(oauth: OAuthBroker, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mark-77 of a secret\n", encoding="utf-8")
    with issuer() as (url, asked):
        oidc = {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.id": "lagwise",
            "sasl.oauthbearer.client.secret": f"file:{tmp_path / 'secret'}",
            "sasl.oauthbearer.scope": "kafka",
        }
        result = run("orders", tmp_path, oauth.properties(tmp_path) | oidc, provider="", timeout_s=10)

    assert result.exit_code == 0, result.output
    assert asked
    assert "scope=kafka" in asked[0]
