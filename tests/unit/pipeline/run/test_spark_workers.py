"""What the workers of a standalone cluster have, by pages that answer as a real master did, or do not."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pipeline.run.spark.executors import workers_of

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "data" / "spark-master-4.2.json").read_text(encoding="utf-8")
)
_ONE = "127.0.0.1: 3072 of 3072 MiB and 2 of 2 cores free"


@contextmanager
def page(*answers: bytes, host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """The port of a master that gives these answers to /json/, the last one for ever."""
    left = list(answers)

    class Master(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/json/":
                self.send_error(404)
                return
            body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((host, port), Master) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def said(**fields: Any) -> bytes:
    return json.dumps(RECORDED | fields).encode()


def test_workers_are_told_with_what_is_free_of_what_they_have() -> None:
    first, second = RECORDED["workers"]
    busy = first | {"memoryfree": 1024, "coresfree": 0}
    dead = second | {"state": "DEAD"}
    with page(said(), said(workers=[busy, dead]), said(workers=[dead])) as port:
        told = [workers_of("spark://127.0.0.1:7077", page_port=str(port)) for _ in range(3)]

    assert told == [f"{_ONE}; {_ONE}", "127.0.0.1: 1024 of 3072 MiB and 0 of 2 cores free", "none is alive"]


def test_master_that_stands_by_is_not_asked_what_it_does_not_know() -> None:
    with (
        page(said(status="STANDBY", workers=[])) as port,
        page(said(workers=RECORDED["workers"][:1]), host="127.0.0.2", port=port),
    ):
        both = workers_of("spark://127.0.0.1:7077,127.0.0.2:7077", page_port=str(port))
        alone = workers_of("spark://127.0.0.1:7077", page_port=str(port))

    assert both == _ONE
    assert alone.startswith(f"unknown, no active master answers on http://127.0.0.1:{port}/json/: ")


@pytest.mark.parametrize("answer", [b"", b"{}", b"[]", b"<html>", b'{"workers": null, "status": "ALIVE"}'])
def test_page_that_is_no_masters_is_said_to_be_none_and_the_key_of_its_port_is_named(answer: bytes) -> None:
    with page(answer) as port:
        told = workers_of("spark://127.0.0.1:7077", page_port=str(port))

    assert told.startswith("unknown, no active master answers on ")
    assert told.endswith("name its port in spark.master.ui.port")


@pytest.mark.parametrize(
    ("master", "host"), [("spark://127.0.0.1:7077", "127.0.0.1"), ("spark://[::1]:7077", "[::1]")]
)
def test_where_nobody_answers_the_page_is_named(master: str, host: str) -> None:
    with page(b"") as port:
        pass

    assert f" on http://{host}:{port}/json/: see its page" in workers_of(master, page_port=str(port))


def test_managers_of_other_kinds_have_pages_of_their_own() -> None:
    assert workers_of("yarn", page_port="8080") == "see the cluster manager's page (yarn)"
