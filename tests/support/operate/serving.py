"""`lagwise serve` in a process of its own, in which Spark and the Kafka clients cannot be loaded; and what it answers."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn

from pipeline.operate.serve.listener.connections import Connection, Connections

_CODE = """
import sys

class Missing:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {"pyspark", "py4j", "delta", "confluent_kafka", "pandas"}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
from pipeline.operate.cli.app import main
main()
"""


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Serving:
    """A process that listens, and its address."""

    process: "subprocess.Popen[str]"
    url: str

    def get(self, path: str, **headers: str) -> Answer:
        return get(f"{self.url}{path}", **headers)


def get(url: str, *, timeout_s: float = 30, **headers: str) -> Answer:
    """What is answered, whatever its status."""
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.netloc, timeout=timeout_s)) as connection:
        connection.request(
            "GET", f"{parts.path}?{parts.query}", headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.headers.items()}, response.read())


@contextmanager
def serving(*arguments: str) -> Iterator[Serving]:
    """The command with these arguments on a port that is free; it does not outlive the block."""
    command = [sys.executable, "-c", _CODE, "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            said = process.stderr.readline()
            assert " on http://" in said, said + process.stderr.read()
            yield Serving(process, said.split()[-1])
        finally:
            process.kill()


@contextmanager
def serving_app(app: Any) -> Iterator[str]:
    """The address of an application that this process serves in a thread, with the limits of the command."""
    settings = uvicorn.Config(app, http=Connection, log_config=None, lifespan="off", server_header=False)
    server = uvicorn.Server(settings)
    server.server_state = Connections()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
