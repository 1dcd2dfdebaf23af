"""A proxy between a client and an S3 store: it counts requests, delays or drops answers, and refuses writes.

One request at a time goes over a connection (HTTP/1.1), so where a request begins is known without reading it whole.
It is a process of its own, told by lines on its stdin: delta-rs keeps Python's lock while it waits for some answers.
"""

import json
import select
import socket
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import Any

HOST = "127.0.0.1"
_CHUNK = 64 * 1024
_WRITES = (b"PUT ", b"POST ", b"DELETE ")
_VERBS = (b"GET ", b"HEAD ", *_WRITES)
_GO_ON = b"HTTP/1.1 100 "
_DRAINED_WITHIN_S = 5.0
_WITHIN_S = 10.0


class StoreProxy:
    """Passes connections on to one port of this machine; a context manager."""

    def __init__(self, target_port: int) -> None:
        """Start to listen on a free port."""
        command = [sys.executable, "-m", __name__, str(target_port)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._port = int(self._tell()["port"])

    @property
    def endpoint(self) -> str:
        """Address of the proxy."""
        return f"http://{HOST}:{self._port}"

    def delay(self, seconds: float) -> None:
        """Delay each answer by this much from now on."""
        self._tell(delay_s=seconds)

    def take_requests(self) -> list[str]:
        """Verb and path, with the query, of each request since the last call."""
        requests: list[str] = self._tell(requests=[])["requests"]
        return requests

    def refuse_writes(self, status: int, code: str, *, to: str = "") -> None:
        """Answer each write to a path that contains `to` with this HTTP status and S3 error code from now on."""
        self._tell(refusal=[status, code], refused_paths=to)

    def take_writes(self) -> int:
        """Pass writes on again, and return how many were refused."""
        refused: int = self._tell(refusal=None)["refused"]
        return refused

    def lose_answers(self, *parts: str) -> None:
        """For each of these parts, carry out the next write to a path that contains it, and lose its answer."""
        self._tell(to_lose=parts)

    @property
    def answers_to_lose(self) -> int:
        """How many answers of `lose_answers` are still to be lost."""
        return len(self._tell()["to_lose"])

    def __enter__(self) -> "StoreProxy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        # This also closes its pipes.
        self._process.communicate(timeout=_WITHIN_S)

    def _tell(self, **changes: Any) -> dict[str, Any]:
        """Its state after these changes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(changes)}\n")
        state: dict[str, Any] = json.loads(self._process.stdout.readline())
        return state


class _Proxy:
    """Passes connections on to one port of this machine.

    Attributes:
        delay_s: How late each answer is.
        refusal: HTTP status and S3's code by which each write is answered; None passes it on.
        refused_paths: Part of the paths to which writes are answered so.
        refused: How many were.
        to_lose: Parts of paths; a write to one is carried out, once for each, and its answer lost.
        requests: Verb and path of each request, in their order.
    """

    def __init__(self, target_port: int) -> None:
        """Listen on a free port."""
        self.delay_s = 0.0
        self.refusal: tuple[int, str] | None = None
        self.refused_paths = ""
        self.refused = 0
        self.to_lose: list[str] = []
        self.requests: list[str] = []
        self._target_port = target_port
        self._listener = socket.create_server((HOST, 0), backlog=256)
        threading.Thread(target=self._accept, name="store-proxy", daemon=True).start()

    def told(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The state after these changes of attributes, with the requests before them."""
        requests = self.requests
        for name, value in changes.items():
            setattr(self, name, value)
        port = self._listener.getsockname()[1]
        return {"port": port, "refused": self.refused, "to_lose": self.to_lose, "requests": requests}

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._link, args=(client,), daemon=True).start()

    def _link(self, client: socket.socket) -> None:
        try:
            with client, socket.create_connection((HOST, self._target_port)) as server:
                self._pass_on(client, server)
        except OSError:
            # One end has gone; the other sees its connection closed.
            return

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        is_answered, to_lose = False, None
        while True:
            readable, _, _ = select.select([client, server], [], [])
            for source, sink in ((client, server), (server, client)):
                if source not in readable:
                    continue
                chunk = source.recv(_CHUNK)
                if not chunk:
                    return
                if source is client:
                    is_answered = False
                    written = self._written_path(chunk)
                    to_lose = self._to_lose(written) or to_lose
                    if self.refusal is not None and written is not None and self.refused_paths in written:
                        self._refuse(client, *self.refusal)
                        return
                elif not is_answered:
                    is_answered = True
                    if to_lose is not None and not chunk.startswith(_GO_ON):
                        self.to_lose.remove(to_lose)
                        return
                    time.sleep(self.delay_s)
                sink.sendall(chunk)

    def _written_path(self, chunk: bytes) -> str | None:
        """Where the request writes that begins with this; None if it reads, or if no request begins here."""
        if not chunk.startswith(_VERBS):
            return None
        verb, path, _ = chunk.decode(errors="replace").split(" ", 2)
        self.requests.append(f"{verb} {path}")
        return path if chunk.startswith(_WRITES) else None

    def _to_lose(self, written: str | None) -> str | None:
        """The entry of `to_lose` that matches the path, if something is written."""
        return None if written is None else next((part for part in self.to_lose if part in written), None)

    def _refuse(self, client: socket.socket, status: int, code: str) -> None:
        self.refused += 1
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>refused by the test</Message></Error>'
        head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        client.shutdown(socket.SHUT_WR)
        # Closing before the request's body has arrived would reset the connection, and the answer would be lost.
        client.settimeout(_DRAINED_WITHIN_S)
        while client.recv(_CHUNK):
            pass


def _main() -> None:
    proxy = _Proxy(int(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(proxy.told(json.loads(line))), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    _main()
