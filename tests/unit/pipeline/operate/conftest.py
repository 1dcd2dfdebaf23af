from pathlib import Path

import pytest

from tests.support.operate.table_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
