"""Decisions of a task are made without garbage collections, and nothing else is."""

import gc

import pytest

from pipeline.run.tasks.deciding import _collections_off


def test_garbage_is_not_collected_while_decisions_are_made() -> None:
    with _collections_off():
        assert not gc.isenabled()

    assert gc.isenabled()


def test_garbage_is_collected_again_after_decisions_that_fail() -> None:
    with pytest.raises(ZeroDivisionError), _collections_off():
        _ = 1 / 0

    assert gc.isenabled()
