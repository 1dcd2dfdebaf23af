"""Fixtures of the tests of clients."""

import pytest

from tests.support.followers.follow_driver import (
    Driver,
    following_new_owner,
    following_old_owner,
    having_released,
)


@pytest.fixture
def old_owner() -> Driver:
    return following_old_owner()


@pytest.fixture
def new_owner() -> Driver:
    return following_new_owner()


@pytest.fixture
def released() -> Driver:
    return having_released()
