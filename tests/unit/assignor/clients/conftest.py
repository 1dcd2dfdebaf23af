"""Fixtures of the tests of clients."""

import pytest

from tests.support.follow_driver import Driver, following_giver, following_taker, having_released


@pytest.fixture
def giver() -> Driver:
    return following_giver()


@pytest.fixture
def taker() -> Driver:
    return following_taker()


@pytest.fixture
def released() -> Driver:
    return having_released()
