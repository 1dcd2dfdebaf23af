"""The proxy that can be a black hole: not a byte passes a hole, and none is lost or out of order after it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.brokers.proxy import HOST, Proxy
from tests.support.waiting import wait_until

SILENCE_S = 0.2
LARGE = bytes(range(256)) * 40_000


@contextmanager
def echo_server() -> Iterator[int]:
    """A port that sends back whatever comes, on every connection."""
    with socket.create_server((HOST, 0)) as listener:
        server = threading.Thread(target=_accept, args=(listener,))
        server.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            server.join(10)


def _accept(listener: socket.socket) -> None:
    echoes = []
    with suppress(OSError):
        while True:
            echoes.append(threading.Thread(target=_echo, args=(listener.accept()[0],)))
            echoes[-1].start()
    for echo in echoes:
        echo.join(10)


def _echo(connection: socket.socket) -> None:
    with connection, suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            connection.sendall(chunk)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy before an echo server."""
    with echo_server() as port, Proxy(port) as running:
        yield running


@contextmanager
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection((HOST, proxy.port), timeout=10) as connection:
        yield connection


@contextmanager
def accepted() -> Iterator[tuple[Proxy, socket.socket, socket.socket]]:
    """A proxy with one connection through it, and both of its ends: the client's and the server's."""
    with (
        socket.create_server((HOST, 0)) as listener,
        Proxy(listener.getsockname()[1]) as proxy,
        client(proxy) as connection,
        listener.accept()[0] as server,
    ):
        server.settimeout(10)
        yield proxy, connection, server


def echoed(connection: socket.socket, sent: bytes) -> bytes:
    connection.sendall(sent)
    return received(connection, len(sent))


def received(connection: socket.socket, size: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < size and (chunk := connection.recv(size - len(chunks))):
        chunks += chunk
    return bytes(chunks)


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SILENCE_S)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(10)
    return False


def is_reset(connection: socket.socket) -> bool:
    try:
        connection.recv(1)
    except ConnectionResetError:
        return True
    return False


def refuses(proxy: Proxy) -> bool:
    # The reset may come before the connection is known to stand.
    try:
        with client(proxy) as connection:
            return is_reset(connection)
    except ConnectionResetError:
        return True


def test_bytes_pass_both_ways_and_so_does_the_end(proxy: Proxy) -> None:
    with client(proxy) as one, client(proxy) as other:
        assert echoed(one, b"one") == b"one"
        assert echoed(other, b"other") == b"other"
        one.sendall(b"last")
        one.shutdown(socket.SHUT_WR)

        assert received(one, 100) == b"last"
        wait_until(lambda: proxy.connections == 1, what="the end of one connection")


def test_more_than_the_buffers_hold_passes_whole(proxy: Proxy) -> None:
    with client(proxy) as connection:
        sender = threading.Thread(target=connection.sendall, args=(LARGE,))
        sender.start()

        assert received(connection, len(LARGE)) == LARGE
        sender.join(10)


def test_open_and_new_connections_are_silent_in_a_black_hole(proxy: Proxy) -> None:
    with client(proxy) as old:
        assert echoed(old, b"before") == b"before"

        proxy.black_hole()

        with client(proxy) as new:
            old.sendall(b"old")
            new.sendall(b"new")
            assert is_silent(old)
            assert is_silent(new)
            assert proxy.connections == 2


def test_what_was_held_back_comes_in_order_after_the_hole(proxy: Proxy) -> None:
    with client(proxy) as old:
        proxy.black_hole()
        with client(proxy) as new:
            old.sendall(b"1")
            new.sendall(b"1")
            assert is_silent(old)

            proxy.forward()

            assert echoed(old, b"2") + received(old, 1) == b"12"
            assert echoed(new, b"2") + received(new, 1) == b"12"


def test_a_hole_opens_in_the_middle_of_a_transfer(proxy: Proxy) -> None:
    with client(proxy) as connection:
        sender = threading.Thread(target=connection.sendall, args=(LARGE,))
        sender.start()
        begun = received(connection, len(LARGE) // 10)

        proxy.black_hole()

        passed = proxy.passed_bytes
        # What the kernel had already taken for this client still arrives.
        before = drained(connection)
        assert proxy.passed_bytes == passed
        assert len(begun) + len(before) < len(LARGE)
        proxy.forward()
        assert begun + before + received(connection, len(LARGE) - len(begun) - len(before)) == LARGE
        sender.join(10)


def drained(connection: socket.socket) -> bytes:
    """What arrives until nothing does any more."""
    chunks = bytearray()
    connection.settimeout(SILENCE_S)
    with suppress(TimeoutError):
        while chunk := connection.recv(65536):
            chunks += chunk
    connection.settimeout(10)
    return bytes(chunks)


def test_the_end_of_a_connection_does_not_pass_a_black_hole() -> None:
    with accepted() as (proxy, connection, server):
        proxy.black_hole()
        server.close()

        assert is_silent(connection)

        proxy.forward()
        assert connection.recv(1) == b""


def test_a_connection_made_in_a_black_hole_reaches_the_server_after_it() -> None:
    with socket.create_server((HOST, 0)) as listener, Proxy(listener.getsockname()[1]) as proxy:
        proxy.black_hole()
        listener.settimeout(SILENCE_S)
        with client(proxy):
            with pytest.raises(TimeoutError):
                listener.accept()

            proxy.forward()

            listener.settimeout(10)
            listener.accept()[0].close()


def test_refusing_resets_open_and_new_connections_until_it_forwards(proxy: Proxy) -> None:
    with client(proxy) as old:
        assert echoed(old, b"before") == b"before"

        proxy.refuse()

        assert is_reset(old)
        assert refuses(proxy)
    proxy.forward()
    with client(proxy) as after:
        assert echoed(after, b"after") == b"after"


def test_what_was_held_back_is_lost_when_the_proxy_refuses() -> None:
    with accepted() as (proxy, connection, server):
        proxy.black_hole()
        connection.sendall(b"lost")

        proxy.refuse()
        proxy.forward()

        assert is_reset(server)
        assert is_reset(connection)


def test_a_target_that_does_not_listen_is_a_reset(proxy: Proxy) -> None:
    with socket.create_server((HOST, 0)) as nobody:
        proxy.target_port = nobody.getsockname()[1]

    assert refuses(proxy)


def test_closing_leaves_no_thread_and_no_connection(proxy: Proxy) -> None:
    with client(proxy) as open_one, client(proxy) as held_one:
        assert echoed(open_one, b"x") == b"x"
        proxy.black_hole()
        held_one.sendall(b"x")

        proxy.close()

        assert is_reset(open_one)
        assert is_reset(held_one)
        assert f"proxy-{proxy.port}" not in {thread.name for thread in threading.enumerate()}
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, proxy.port), timeout=1)
