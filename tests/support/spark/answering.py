"""Whether a server of a test answers."""

from http.client import HTTPConnection


def answers(port: int) -> bool:
    """Return whether the server on this port of the host answers HTTP, whatever it says."""
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status > 0
    except OSError:
        return False
    finally:
        connection.close()
