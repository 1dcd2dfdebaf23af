"""A TCP proxy on loopback that can become a black hole from one moment to the next.

    forward      bytes pass both ways, as soon as they come
    black hole   connections are taken and stay open, and nothing passes, as behind a firewall that drops packets
    refuse       open connections are reset, and new ones as soon as they are made

A change holds for open connections too, from the moment the call returns. What was under way when the hole opened,
and what was sent into it as far as the sockets' buffers go, is held back: once the proxy forwards again it is passed
on in order, ends of connections included, as TCP does after packets were lost for a while. Whoever wants it lost goes
through `refuse` first.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

HOST = "127.0.0.1"

_CHUNK = 64 * 1024
_ANSWER_WITHIN_S = 10.0
# A socket with this closes by RST, not by FIN.
_NO_LINGER = struct.pack("ii", 1, 0)


class Proxy:
    """Passes connections on to one port of this machine; a context manager that works from the start.

    Attributes:
        port: Where it listens.
        target_port: Where new connections lead to; may change at any time. Null refuses them.
        passed_bytes: How many went through since the start, both ways together.
    """

    def __init__(self, target_port: int | None = None) -> None:
        """Listen on a free port and forward."""
        self.target_port = target_port
        self.passed_bytes = 0
        self._listener = socket.create_server((HOST, 0), backlog=1024)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._links: set[asyncio.Task[None]] = set()
        self._passable = asyncio.Event()
        self._passable.set()
        self._refuses = False
        self._closing = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def connections(self) -> int:
        """Number of open connections, those in a black hole included."""
        return len(self._links)

    def forward(self) -> None:
        """Let bytes pass, first of all those that were held back."""
        self._do(self._change(passable=True, refuses=False))

    def black_hole(self) -> None:
        """Let no byte pass, and close nothing."""
        self._do(self._change(passable=False, refuses=False))

    def refuse(self) -> None:
        """Reset all connections, with what was held back, and every new one."""
        self._do(self._change(passable=True, refuses=True))

    def close(self) -> None:
        """Reset all connections and listen no more."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(_ANSWER_WITHIN_S)

    def _do(self, change: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(change, self._loop).result(_ANSWER_WITHIN_S)

    async def _change(self, *, passable: bool, refuses: bool) -> None:
        self._refuses = refuses
        if refuses:
            await self._reset_all()
        if passable:
            self._passable.set()
        else:
            self._passable.clear()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        accepting = asyncio.create_task(self._accept())
        await self._closing.wait()
        accepting.cancel()
        await asyncio.wait({accepting})
        self._listener.close()
        await self._reset_all()

    async def _accept(self) -> None:
        while True:
            client, _ = await self._loop.sock_accept(self._listener)
            link = asyncio.create_task(self._link(client))
            self._links.add(link)
            link.add_done_callback(self._links.discard)

    async def _reset_all(self) -> None:
        links = set(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _link(self, client: socket.socket) -> None:
        """One connection, from its being accepted to its end; what ends otherwise than by FIN is reset."""
        server = socket.socket()
        try:
            await self._lead(client, server)
        except (OSError, asyncio.CancelledError):
            for end in (client, server):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        finally:
            client.close()
            server.close()

    async def _lead(self, client: socket.socket, server: socket.socket) -> None:
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self._until_passable()
        if self._refuses or self.target_port is None:
            raise ConnectionRefusedError
        await self._loop.sock_connect(server, (HOST, self.target_port))
        ways = {
            asyncio.create_task(self._pass_on(client, server)),
            asyncio.create_task(self._pass_on(server, client)),
        }
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        for way in done:
            way.result()

    async def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        """Pass one way on, its end or its failure too."""
        while True:
            try:
                chunk = await self._loop.sock_recv(source, _CHUNK)
            except OSError:
                await self._until_passable()
                raise
            await self._until_passable()
            if not chunk:
                sink.shutdown(socket.SHUT_WR)
                return
            await self._send(sink, memoryview(chunk))

    async def _send(self, sink: socket.socket, rest: memoryview) -> None:
        # Not `sock_sendall`, which would go on writing after the hole has opened.
        while rest:
            await self._until_passable()
            try:
                sent = sink.send(rest)
            except BlockingIOError:
                await self._until_writable(sink)
            else:
                self.passed_bytes += sent
                rest = rest[sent:]

    async def _until_writable(self, sink: socket.socket) -> None:
        writable = asyncio.Event()
        self._loop.add_writer(sink, writable.set)
        try:
            await writable.wait()
        finally:
            self._loop.remove_writer(sink)

    async def _until_passable(self) -> None:
        # An event that was set wakes its waiters later, when it may be clear again.
        while not self._passable.is_set():
            await self._passable.wait()
