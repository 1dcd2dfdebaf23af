import itertools
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


def test_ctrl_c_cancels_until_there_is_something_to_cancel_and_leaves_the_worker() -> None:
    worker, begun, ended = Worker(), threading.Event(), threading.Event()
    calls = itertools.count(1)

    def _long() -> None:
        begun.set()
        ended.wait(30)

    def _cancel() -> None:
        # The first one comes while Spark still plans.
        if next(calls) > 1:
            ended.set()

    threading.Thread(target=_interrupt, args=(begun,)).start()

    with pytest.raises(KeyboardInterrupt):
        result_of(worker.begin(_long), _cancel)
    assert ended.is_set()
    assert result_of(worker.begin(lambda: 2), _never) == 2


def test_second_ctrl_c_ends_the_process_whatever_still_runs() -> None:
    begun, cancelled, ended = threading.Event(), threading.Event(), threading.Event()

    def _long() -> None:
        begun.set()
        ended.wait(30)

    for event in (begun, cancelled):
        threading.Thread(target=_interrupt, args=(event,)).start()

    with pytest.raises(SystemExit) as raised:
        result_of(Worker().begin(_long), cancelled.set)
    ended.set()
    assert raised.value.code == 130


def _interrupt(when: threading.Event) -> None:
    if when.wait(30):
        signal.raise_signal(signal.SIGINT)
