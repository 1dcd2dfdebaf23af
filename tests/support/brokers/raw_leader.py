"""A leader of a classic group that assigns bytes of the test's choice, which no client library hands out."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_JOIN, _SYNC = (11, 3), (14, 1)
"""Key and version of requests."""
_SESSION_MS = 45_000


@contextmanager
def led(
    bootstrap: str,
    group: str,
    assignment: bytes,
    *,
    protocol_type: str = "consumer",
    subscription: bytes = b"",
) -> Iterator[None]:
    """For the body, the group has one member, with this assignment."""
    host, port = bootstrap.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        joining = (
            _text(group)
            + struct.pack(">ii", _SESSION_MS, _SESSION_MS)
            + _text("")
            + _text(protocol_type)
            + struct.pack(">i", 1)
            + _text("raw")
            + _bytes(subscription)
        )
        joined = _answer(connection, _JOIN, joining)
        _, error, generation = struct.unpack_from(">ihi", joined)
        assert error == 0
        _, leader = _taken(joined, *_taken(joined, 10)[:1])
        syncing = _text(group) + struct.pack(">i", generation) + _text(leader)
        answer = _answer(
            connection, _SYNC, syncing + struct.pack(">i", 1) + _text(leader) + _bytes(assignment)
        )
        assert struct.unpack_from(">ih", answer)[1] == 0
        yield


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def _bytes(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _taken(answer: bytes, at: int) -> tuple[int, str]:
    """The end of the string that begins there, and the string."""
    (length,) = struct.unpack_from(">h", answer, at)
    return at + 2 + length, answer[at + 2 : at + 2 + length].decode()


def _answer(connection: socket.socket, request: tuple[int, int], body: bytes) -> bytes:
    connection.sendall(_bytes(struct.pack(">hhi", *request, 1) + _text("raw") + body))
    (length,) = struct.unpack(">i", _received(connection, 4))
    return _received(connection, length)[4:]


def _received(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = connection.recv(count - len(found))
        assert piece
        found += piece
    return found
