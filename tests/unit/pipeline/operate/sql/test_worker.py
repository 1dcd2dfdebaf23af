import signal
import threading

import pytest

from pipeline.operate.sql.worker import Worker, result_of


def _never() -> None:
    pytest.fail("nobody has asked for it to be cancelled")


def test_results_come_in_order_and_errors_are_raised_where_they_are_waited_for() -> None:
    worker = Worker()
    first, second = worker.begin(lambda: 1), worker.begin(lambda: 1 / 0)

    assert result_of(first, _never) == 1
    with pytest.raises(ZeroDivisionError):
        result_of(second, _never)


def test_ctrl_c_cancels_and_leaves_the_worker_for_what_comes_next() -> None:
    worker, cancelled, begun = Worker(), threading.Event(), threading.Event()

    def _long() -> None:
        begun.set()
        cancelled.wait(30)

    def _interrupt() -> None:
        begun.wait(30)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=_interrupt).start()

    with pytest.raises(KeyboardInterrupt):
        result_of(worker.begin(_long), cancelled.set)
    assert cancelled.is_set()
    assert result_of(worker.begin(lambda: 2), _never) == 2
