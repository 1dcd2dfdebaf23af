"""Tables of a newer lagwise are refused by what reads them, in one line that says what to do."""

import pytest

from tests.support.operate.serving import serving
from tests.support.operate.table_world import World

_WORDS = "has schema version 99 of a newer lagwise, and this one ("


@pytest.fixture
def newer(world: World) -> World:
    world.write("partition_lag", {})
    world.complete()
    world.as_of_a_newer_lagwise("partition_lag")
    return world


@pytest.mark.parametrize("command", ["lag", "health", "doctor"])
def test_command_says_what_to_do(newer: World, command: str) -> None:
    done = newer.run(command)

    assert done.exit_code != 0
    said = [line for line in (done.stdout + done.stderr).splitlines() if _WORDS in line]
    assert said
    assert "use the lagwise of the driver, or restore a backup" in said[0]


def test_server_goes_on_and_says_what_to_do(newer: World) -> None:
    with serving("--tables", str(newer.root)) as running:
        answers = [running.get(path) for path in ("/metrics", "/api/v1/groups", "/")]

        assert running.get("/healthz").status == 200
    assert [answer.status for answer in answers] == [503, 503, 503]
    assert all(_WORDS in answer.text for answer in answers)
