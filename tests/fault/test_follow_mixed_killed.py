"""Members of all clients that share a group, killed and replaced while it applies one plan after the other."""

from pathlib import Path

import pytest

from pipeline.local.embedded.broker import EmbeddedBroker
from tests.support.followers.follow_mixed import run
from tests.support.java.java_jar import java_jar


@pytest.mark.timeout(600)
def test_mixed_group_loses_nothing_and_has_one_owner_through_kills_and_rolling_bounces(
    broker: EmbeddedBroker, tmp_path: Path
) -> None:
    outcome = run(broker.bootstrap_servers, "mixed", tmp_path, jar=java_jar(), seed=5)

    assert (outcome.lost, outcome.second_owners) == (0, 0)
    assert (outcome.kills, outcome.replaced) == (6, 8)
    assert outcome.acknowledged > outcome.kills
