"""Waiting for so long and no longer."""

import threading

import pytest

from assignor.clients.bounded import within


def test_result_comes_back() -> None:
    assert within(5, lambda: 7) == 7


@pytest.mark.parametrize("error", [ConnectionRefusedError("no"), TimeoutError("the work's own")])
def test_what_the_work_raises_is_raised(error: Exception) -> None:
    def work() -> None:
        raise error

    with pytest.raises(type(error), match=str(error)):
        within(5, work)


def test_work_that_does_not_end_is_left_behind() -> None:
    end = threading.Event()

    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
        within(0.01, end.wait)

    end.set()
