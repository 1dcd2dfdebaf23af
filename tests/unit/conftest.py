"""Fixtures of unit tests."""

import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_client_goes_on() -> Iterator[None]:
    """A client left running draws random numbers in its thread, which fails whatever property is tested meanwhile."""
    before = set(threading.enumerate())
    yield
    assert not [t.name for t in threading.enumerate() if t not in before and "kafka" in t.name]
