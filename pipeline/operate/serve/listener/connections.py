"""Limits of one connection and of all: their number, the time for a request to arrive, and unfetched responses.

Uvicorn's own limits count requests; a client that never completes one is outside of them. So the protocol here closes
what is late, and at the limit the connection that has been silent for longest: a client that sends its request at
once is served.
"""

import asyncio
import logging
import resource

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.server import ServerState

from pipeline.operate.serve.responses import SAFE_HEADERS

log = logging.getLogger(__name__)

REQUEST_WITHIN_S = 10.0
"""Time for head and body of a request, from the end of the previous one."""
FETCHED_WITHIN_S = 60.0
"""Time for an answer that the client reads more slowly than it is written."""
BACKLOG = 128
"""Connections that the kernel queues, and that asyncio accepts at a time."""
MOST_HEAD_BYTES = 64 * 1024
_MOST_CONNECTIONS = 256
_MOST_UNFETCHED_BYTES = 32 << 20
_BAD_REQUEST, _TIMEOUT, _UNAVAILABLE = 400, 408, 503
_COMING = (h11.IDLE, h11.SEND_BODY)
"""States of a client whose request is not complete."""
_UNANSWERED = (h11.IDLE, h11.SEND_RESPONSE)
"""Own states in which an answer can begin."""


class Connections(ServerState):
    """All connections of the process."""

    def __init__(self) -> None:
        super().__init__()
        handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Reading tables takes handles, too, and asyncio accepts new connections before it closes old ones.
        self.most = _MOST_CONNECTIONS if handles < 0 else min(_MOST_CONNECTIONS, handles // 4)
        self.waiting: dict[Connection, None] = {}
        """Connections with an incomplete request, the oldest first."""
        self.unfetched: dict[Connection, None] = {}
        """Connections with unread answers, the oldest first."""


class Connection(H11Protocol):
    """One connection, which is closed if it blocks others."""

    server_state: Connections

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._request_timer: asyncio.TimerHandle | None = None
        self._fetch_timer: asyncio.TimerHandle | None = None
        self._is_too_many = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        """Accept it; at the limit, replace the connection whose request is late for longest."""
        super().connection_made(transport)
        state = self.server_state
        if len(state.connections) > state.most:
            if state.waiting:
                log.warning(
                    "an idle connection was closed to make room for a new one", extra={"limit": state.most}
                )
                next(iter(state.waiting)).close_now()
            else:
                self._is_too_many = True
        self._look_at_request()

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        if self._is_too_many:
            log.warning("a connection was refused", extra={"limit": self.server_state.most})
            self._refuse(_UNAVAILABLE, "too many connections; ask again in a few seconds")
            return
        super().data_received(data)
        self._look_at_request()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._look_at_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._forget_request()
        self._forget_answer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the client to read, unless too much data waits already."""
        super().pause_writing()
        unfetched = self.server_state.unfetched
        unfetched[self] = None
        self._fetch_timer = self.loop.call_later(FETCHED_WITHIN_S, self._fetched_too_slowly)
        while len(unfetched) > 1 and sum(map(_buffered, unfetched)) > _MOST_UNFETCHED_BYTES:
            log.warning("a response was abandoned: too many bytes wait for clients that do not read")
            next(iter(unfetched)).close_now()

    def resume_writing(self) -> None:
        """Continue to write."""
        self._forget_answer()
        super().resume_writing()

    def close_now(self) -> None:
        """Close the connection, discarding unsent and unread data."""
        self._forget_request()
        self._forget_answer()
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Reject data that is not HTTP."""
        self._refuse(_BAD_REQUEST, msg)

    def _look_at_request(self) -> None:
        if self.transport.is_closing() or self.conn.their_state not in _COMING:
            self._forget_request()
        elif self not in self.server_state.waiting:
            self.server_state.waiting[self] = None
            self._request_timer = self.loop.call_later(REQUEST_WITHIN_S, self._requested_too_slowly)

    def _forget_request(self) -> None:
        self.server_state.waiting.pop(self, None)
        if self._request_timer is not None:
            self._request_timer.cancel()

    def _forget_answer(self) -> None:
        self.server_state.unfetched.pop(self, None)
        if self._fetch_timer is not None:
            self._fetch_timer.cancel()

    def _requested_too_slowly(self) -> None:
        log.warning("a request did not arrive in time", extra={"limit_s": REQUEST_WITHIN_S})
        self._forget_request()
        if self.conn.our_state is h11.IDLE:
            self._refuse(_TIMEOUT, f"the request did not arrive within {REQUEST_WITHIN_S:g} s")
        else:
            self.close_now()

    def _fetched_too_slowly(self) -> None:
        log.warning("a client did not read its response in time", extra={"limit_s": FETCHED_WITHIN_S})
        self.close_now()

    def _refuse(self, status: int, cause: str) -> None:
        """Answer instead of the application, unless an answer has begun, and close the connection."""
        self._forget_request()
        if self.conn.our_state not in _UNANSWERED:
            self.close_now()
            return
        body = f"{cause}\n".encode()
        headers = {
            **SAFE_HEADERS,
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        head = h11.Response(
            status_code=status,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            reason=STATUS_PHRASES[status],
        )
        parts = [self.conn.send(event) for event in (head, h11.Data(data=body), h11.EndOfMessage())]
        self.transport.write(b"".join(part for part in parts if part))
        self.transport.close()


def _buffered(connection: Connection) -> int:
    return connection.transport.get_write_buffer_size()
